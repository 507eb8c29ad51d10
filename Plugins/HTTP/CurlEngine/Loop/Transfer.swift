import CCurl
import SystemPackage
import TransferCore

/// libcurl's transfer of one running request. Used only on the thread of ``CurlLoop``.
@safe final class Transfer {
    let pending: PendingRequest
    let handle: EasyHandle
    let pool: ConnectionPool
    var upload: UploadState
    var download: DownloadState?
    var response: ResponseCollector
    private var hasReportedRejection = false
    /// The error of a callback that ended the transfer. It is more precise than libcurl's code.
    var failure: (any Error)?
    /// The number of times that libcurl started to send the request, including its own retries.
    var requestsBegun = 0
    let isRepeatable: Bool
    /// libcurl's result; nil while the transfer runs.
    var code: CURLcode?

    private var headerList: UnsafeMutablePointer<curl_slist>?

    init(
        _ pending: PendingRequest, handle: EasyHandle, pool: ConnectionPool, body: BodySource, download: DownloadState?,
        configuration: CurlEngine.Configuration
    ) throws(CurlEngineError) {
        self.pending = pending
        self.handle = handle
        self.pool = pool
        self.download = download
        isRepeatable = pending.request.isRepeatable
        upload = UploadState(pending, source: body)
        response = ResponseCollector(
            maximumHeaders: configuration.maximumResponseHeaders,
            maximumBody: max(configuration.maximumResponseBody, pending.request.maximumResponseBody))
        try configure(configuration)
    }

    deinit {
        unsafe curl_slist_free_all(headerList)
    }

    var hasTrailers: Bool { pending.request.trailers != nil }

    /// Returns the transfer that libcurl passed to a callback. The loop retains the transfer until the handle is reset.
    static func from(_ context: UnsafeMutableRawPointer?) -> Transfer? {
        guard let context = unsafe context else { return nil }
        return unsafe Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
    }

    /// Returns whether the server has rejected the request while the upload is paused. Returns true only once; the caller must then resume
    /// the upload.
    ///
    /// libcurl stops sending when it receives a final response that is not a success. But the transfer ends only when the upload is no longer
    /// paused, and the next content of a live stream may be hours away.
    func consumeRejection() -> Bool {
        guard !hasReportedRejection, upload.isPaused, response.isFinal, response.head.status >= 300 else { return false }
        hasReportedRejection = true
        return true
    }

    /// Pauses or resumes libcurl's sending and receiving to match the state of this transfer. libcurl may call callbacks before this method
    /// returns.
    func applyPauses() {
        let sending = upload.isPaused ? CURLPAUSE_SEND : CURLPAUSE_SEND_CONT
        let receiving = download?.isPaused == true ? CURLPAUSE_RECV : CURLPAUSE_RECV_CONT
        unsafe curl_easy_pause(handle.pointer, sending | receiving)
    }

    private func configure(_ configuration: CurlEngine.Configuration) throws(CurlEngineError) {
        let request = pending.request
        handle.set(CURLOPT_NOSIGNAL, 1)
        // Without this option, removing a handle would wait for its DNS lookup and stall all transfers.
        handle.set(CURLOPT_QUICK_EXIT, 1)
        handle.set(CURLOPT_DISALLOW_USERNAME_IN_URL, 1)
        handle.set(CURLOPT_EXPECT_100_TIMEOUT_MS, 300)
        unsafe ccurl_setopt_pointer(handle.pointer, CURLOPT_SHARE, pool.share)
        try handle.set(CURLOPT_PROTOCOLS_STR, "http,https")
        try handle.set(CURLOPT_URL, request.url)
        try handle.apply(request.connection, defaultConnectTimeout: configuration.connectTimeout)
        if pending.isSocket {
            handle.set(CURLOPT_CONNECT_ONLY, 1)
            handle.set(CURLOPT_HTTPPROXYTUNNEL, 1)
        } else {
            // The server may already have closed a kept-alive connection. libcurl would then send the request again, but the bytes of a stream
            // can't be sent twice.
            if request.needsNewConnection || request.body.isStream { handle.set(CURLOPT_FRESH_CONNECT, 1) }
            try setMethodAndBody(request, uploadBufferSize: configuration.uploadBufferSize)
            try setHeaders(request)
        }
        setCallbacks()
    }

    private func setMethodAndBody(_ request: HTTPRequest, uploadBufferSize: Int) throws(CurlEngineError) {
        if request.method == "HEAD" { handle.set(CURLOPT_NOBODY, 1) }
        if !request.body.isNone {
            // libcurl calls any request with a body an "upload". The method is set below.
            handle.set(CURLOPT_UPLOAD, 1)
            // libcurl sends a body in HTTP chunks if its length is -1, that is, unknown.
            let length = request.isChunked ? -1 : request.body.length ?? -1
            unsafe ccurl_setopt_offset(handle.pointer, CURLOPT_INFILESIZE_LARGE, curl_off_t(length))
            let likely = request.body.length ?? Int64(uploadBufferSize)
            handle.set(CURLOPT_UPLOAD_BUFFERSIZE, Int(min(max(likely, 16 * 1024), Int64(uploadBufferSize))))
        }
        try handle.set(CURLOPT_CUSTOMREQUEST, request.method)
    }

    private func setHeaders(_ request: HTTPRequest) throws(CurlEngineError) {
        for header in request.headers {
            // With a semicolon, libcurl sends a header without a value. With a colon and no value, it removes the header (CURLOPT_HTTPHEADER(3)).
            try appendHeader(header.value.isEmpty ? "\(header.name);" : "\(header.name): \(header.value)")
        }
        // Always sets or removes the header, because libcurl would otherwise decide based on the size of the body.
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
