import CCurl
import SystemPackage
import TransferCore

/// One request under way. Confined to the loop's thread.
@safe final class Transfer {
    let order: TransferOrder
    let handle: EasyHandle
    let pool: ConnectionPool
    var upload: UploadState
    var download: DownloadState?
    var response: ResponseCollector
    /// Why a callback ended the transfer: says more than libcurl's code does.
    var failure: (any Error)?
    /// How often libcurl was about to put the request on the wire.
    var requestsBegun = 0
    let isRepeatable: Bool
    /// libcurl's result, once there is one.
    var code: CURLcode?

    private var headerList: UnsafeMutablePointer<curl_slist>?

    init(
        _ order: TransferOrder, handle: EasyHandle, pool: ConnectionPool, body: BodySource, download: DownloadState?,
        configuration: CurlEngine.Configuration
    ) throws(CurlEngineError) {
        self.order = order
        self.handle = handle
        self.pool = pool
        self.download = download
        isRepeatable = order.request.isRepeatable
        upload = UploadState(order, source: body)
        response = ResponseCollector(
            maximumHeaders: configuration.maximumResponseHeaders, maximumBody: configuration.maximumResponseBody)
        try configure(configuration)
    }

    deinit {
        unsafe curl_slist_free_all(headerList)
    }

    /// Whether fields follow the body.
    var hasTrailers: Bool { order.request.trailers != nil }

    /// The transfer that libcurl handed back to a callback. Valid for as long as the loop holds it, which is until its handle is reset.
    static func from(_ context: UnsafeMutableRawPointer?) -> Transfer? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }

    /// Lets the directions of the transfer rest that are to, and the others go on. May call back at once.
    func applyPauses() {
        let sending = upload.isPaused ? CURLPAUSE_SEND : CURLPAUSE_SEND_CONT
        let receiving = download?.isPaused == true ? CURLPAUSE_RECV : CURLPAUSE_RECV_CONT
        unsafe curl_easy_pause(handle.pointer, sending | receiving)
    }

    private func configure(_ configuration: CurlEngine.Configuration) throws(CurlEngineError) {
        let request = order.request
        handle.set(CURLOPT_NOSIGNAL, 1)
        // Removing a handle would otherwise wait for its DNS look-up, and stop all transfers meanwhile.
        handle.set(CURLOPT_QUICK_EXIT, 1)
        handle.set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        handle.set(CURLOPT_EXPECT_100_TIMEOUT_MS, 300)
        unsafe ccurl_setopt_pointer(handle.pointer, CURLOPT_SHARE, pool.share)
        try handle.set(CURLOPT_PROTOCOLS_STR, "http,https")
        try handle.set(CURLOPT_URL, request.url)
        try handle.apply(request.connection, defaultConnectTimeout: configuration.connectTimeout)
        if order.isSocket {
            handle.set(CURLOPT_CONNECT_ONLY, 1)
            handle.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        } else {
            if request.needsNewConnection { handle.set(CURLOPT_FRESH_CONNECT, 1) }
            try setMethodAndBody(request, uploadBufferSize: configuration.uploadBufferSize)
            try setHeaders(request)
        }
        setCallbacks()
    }

    private func setMethodAndBody(_ request: HTTPRequest, uploadBufferSize: Int) throws(CurlEngineError) {
        if request.method == "HEAD" { handle.set(CURLOPT_NOBODY, 1) }
        if !request.body.isNone {
            // libcurl's "upload" is any request with a body; the method is replaced below.
            handle.set(CURLOPT_UPLOAD, 1)
            // Of unknown length, libcurl sends it chunked.
            let length = request.isChunked ? -1 : request.body.length ?? -1
            unsafe ccurl_setopt_offset(handle.pointer, CURLOPT_INFILESIZE_LARGE, curl_off_t(length))
            let likely = request.body.length ?? Int64(uploadBufferSize)
            handle.set(CURLOPT_UPLOAD_BUFFERSIZE, Int(min(max(likely, 16 * 1024), Int64(uploadBufferSize))))
        }
        try handle.set(CURLOPT_CUSTOMREQUEST, request.method)
    }

    private func setHeaders(_ request: HTTPRequest) throws(CurlEngineError) {
        for header in request.headers {
            // A header without value is written with a semicolon for libcurl, which removes the header otherwise (CURLOPT_HTTPHEADER(3)).
            try appendHeader(header.value.isEmpty ? "\(header.name);" : "\(header.name): \(header.value)")
        }
        // Without this, libcurl decides by the size of the body.
        try appendHeader(request.expectsContinue ? "Expect: 100-continue" : "Expect:")
        unsafe ccurl_setopt_list(handle.pointer, CURLOPT_HTTPHEADER, headerList)
    }

    private func appendHeader(_ line: String) throws(CurlEngineError) {
        guard let list = unsafe curl_slist_append(headerList, line) else {
            throw CurlEngineError(.outOfResources, "This machine is out of memory.")
        }
        unsafe headerList = unsafe list
    }
}
