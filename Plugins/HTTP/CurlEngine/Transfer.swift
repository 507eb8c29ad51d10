import CCurl
import TransferCore

/// One request under way, and its libcurl handle. Confined to the loop's thread.
@safe final class Transfer {
    let id: TransferOrder.ID
    let easy: UnsafeMutableRawPointer
    var upload: UploadState
    var response: ResponseCollector
    /// Why a callback ended the transfer: says more than libcurl's code does.
    var failure: (any Error)?
    /// How often libcurl was about to put the request on the wire.
    var requestsBegun = 0
    let isRepeatable: Bool

    private let order: TransferOrder
    private var headerList: UnsafeMutablePointer<curl_slist>?
    private let errorText: UnsafeMutablePointer<CChar>

    init(_ order: TransferOrder, body: BodySource, configuration: CurlEngine.Configuration) throws(CurlEngineError) {
        guard let easy = unsafe curl_easy_init() else {
            throw CurlEngineError(.outOfResources, "This machine is out of memory.")
        }
        unsafe self.easy = unsafe easy
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        self.order = order
        id = order.id
        isRepeatable = order.request.isRepeatable
        upload = UploadState(source: body, pacing: order.pacing, progress: order.progress)
        response = ResponseCollector(
            maximumHeaders: configuration.maximumResponseHeaders, maximumBody: configuration.maximumResponseBody)
        try configure(configuration)
    }

    deinit {
        unsafe curl_easy_cleanup(easy)
        unsafe curl_slist_free_all(headerList)
        unsafe errorText.deallocate()
    }

    /// The transfer that libcurl handed back to a callback. Valid for as long as the loop holds it, which is until its handle is removed.
    static func from(_ context: UnsafeMutableRawPointer?) -> Transfer? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }

    /// Hands the result to the caller. Called once, after the handle was removed from libcurl's loop.
    func finish(_ code: CURLcode) {
        var status = 0
        var taken: curl_off_t = 0
        unsafe ccurl_getinfo_long(easy, CURLINFO_RESPONSE_CODE, &status)
        unsafe ccurl_getinfo_offset(easy, CURLINFO_SIZE_UPLOAD_T, &taken)
        upload.report(Int64(taken))
        if let failure { return fail(failure) }
        guard code == CURLE_OK || (response.isBodyTruncated && status >= 200) else {
            let text = unsafe String(cString: errorText[0] == 0 ? curl_easy_strerror(code) : UnsafePointer(errorText))
            return fail(CurlEngineError(code, text: text))
        }
        guard response.areHeadersComplete else {
            return fail(CurlEngineError(CURLE_PARTIAL_FILE, text: "the headers of the answer end early"))
        }
        var url: UnsafeMutablePointer<CChar>?
        unsafe ccurl_getinfo_string(easy, CURLINFO_EFFECTIVE_URL, &url)
        order.continuation.resume(
            returning: HTTPResponse(
                status: status, headers: response.headers, body: response.body, isBodyTruncated: response.isBodyTruncated,
                effectiveURL: unsafe url.map { unsafe String(cString: $0) } ?? order.request.url, sent: upload.sent))
    }

    func fail(_ error: any Error) {
        guard var failure = error as? CurlEngineError else { return order.continuation.resume(throwing: error) }
        failure.sent = upload.sent
        order.continuation.resume(throwing: failure)
    }

    private func configure(_ configuration: CurlEngine.Configuration) throws(CurlEngineError) {
        let request = order.request
        unsafe ccurl_setopt_pointer(easy, CURLOPT_ERRORBUFFER, errorText)
        set(CURLOPT_NOSIGNAL, 1)
        // Removing a handle would otherwise wait for its DNS look-up, and stop all transfers meanwhile.
        set(CURLOPT_QUICK_EXIT, 1)
        set(CURLOPT_CONNECTTIMEOUT_MS, Int(configuration.connectTimeout / .milliseconds(1)))
        set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
        set(CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
        set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        set(CURLOPT_TCP_KEEPALIVE, 1)
        set(CURLOPT_EXPECT_100_TIMEOUT_MS, 300)
        try set(CURLOPT_PROTOCOLS_STR, "http,https")
        try set(CURLOPT_URL, request.url)
        if let file = request.certificateAuthorityFile {
            try set(CURLOPT_CAINFO, file)
            unsafe ccurl_setopt_pointer(easy, CURLOPT_CAPATH, nil)
        }
        try setMethodAndBody(request, uploadBufferSize: configuration.uploadBufferSize)
        try setHeaders(request)
        setCallbacks()
    }

    private func setMethodAndBody(_ request: HTTPRequest, uploadBufferSize: Int) throws(CurlEngineError) {
        if request.method == "HEAD" { set(CURLOPT_NOBODY, 1) }
        if let length = request.body.length {
            // libcurl's "upload" is any request with a body; the method is replaced below.
            set(CURLOPT_UPLOAD, 1)
            unsafe ccurl_setopt_offset(easy, CURLOPT_INFILESIZE_LARGE, curl_off_t(length))
            set(CURLOPT_UPLOAD_BUFFERSIZE, Int(min(max(length, 16 * 1024), Int64(uploadBufferSize))))
        }
        try set(CURLOPT_CUSTOMREQUEST, request.method)
    }

    private func setHeaders(_ request: HTTPRequest) throws(CurlEngineError) {
        for header in request.headers {
            // A header without value is written with a semicolon for libcurl, which removes the header otherwise (CURLOPT_HTTPHEADER(3)).
            try appendHeader(header.value.isEmpty ? "\(header.name);" : "\(header.name): \(header.value)")
        }
        // Without this, libcurl decides by the size of the body.
        try appendHeader(request.expectsContinue ? "Expect: 100-continue" : "Expect:")
        unsafe ccurl_setopt_list(easy, CURLOPT_HTTPHEADER, headerList)
    }

    private func appendHeader(_ line: String) throws(CurlEngineError) {
        guard let list = unsafe curl_slist_append(headerList, line) else {
            throw CurlEngineError(.outOfResources, "This machine is out of memory.")
        }
        unsafe headerList = unsafe list
    }

    func set(_ option: CURLoption, _ value: Int) {
        // Fails only for an option that libcurl was built without; those used here are in every build.
        unsafe ccurl_setopt_long(easy, option, value)
    }

    private func set(_ option: CURLoption, _ value: String) throws(CurlEngineError) {
        let code = unsafe ccurl_setopt_string(easy, option, value)
        guard code == CURLE_OK else { throw CurlEngineError(code, text: unsafe String(cString: curl_easy_strerror(code))) }
    }
}
