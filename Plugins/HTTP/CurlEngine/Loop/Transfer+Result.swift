import CCurl
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension Transfer {
    /// Returns the result for the caller, after libcurl has finished and the sink, if any, has written all bytes. Called once, before the handle is
    /// reset.
    func result(_ code: CURLcode) -> Result<PendingRequest.Outcome, any Error> {
        var accepted: curl_off_t = 0
        unsafe ccurl_getinfo_offset(handle.pointer, CURLINFO_SIZE_UPLOAD_T, &accepted)
        upload.report(Int64(accepted))
        if let failure { return .failure(withSent(failure)) }
        do {
            let outcome: PendingRequest.Outcome = pending.isSocket ? .socket(try duplicateSocket(code)) : .response(try makeResponse(code))
            return .success(outcome)
        } catch {
            return .failure(withSent(error))
        }
    }

    func withSent(_ error: any Error) -> any Error {
        guard var failure = error as? CurlEngineError else { return error }
        failure.sent = upload.sent
        return failure
    }

    private func makeResponse(_ code: CURLcode) throws(CurlEngineError) -> HTTPResponse {
        guard code == CURLE_OK || response.isFinal && (response.isBodyTruncated || hasEarlyResponse) else { throw error(code) }
        guard response.areHeadersComplete else {
            throw CurlEngineError(CURLE_PARTIAL_FILE, text: "the response headers are incomplete")
        }
        return HTTPResponse(
            status: handle.get(CURLINFO_RESPONSE_CODE), headers: response.headers, body: response.body,
            isBodyTruncated: response.isBodyTruncated,
            version: handle.get(CURLINFO_HTTP_VERSION) == Int(CURL_HTTP_VERSION_2_0) ? .http2 : .http1,
            effectiveURL: handle.getString(CURLINFO_EFFECTIVE_URL) ?? pending.request.url, sent: upload.sent)
    }

    /// Whether the whole response to a request with a body arrived before the connection broke. The response is then valid, even if the
    /// server did not receive the whole body.
    private var hasEarlyResponse: Bool {
        !pending.request.body.isNone && download == nil && response.isWhole
    }

    /// Duplicates the descriptor of the connected socket, because libcurl closes the original.
    private func duplicateSocket(_ code: CURLcode) throws(CurlEngineError) -> FileDescriptor {
        guard code == CURLE_OK else { throw error(code) }
        var socket = curl_socket_t(-1)
        unsafe ccurl_getinfo_socket(handle.pointer, &socket)
        let copy = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else {
            throw CurlEngineError(
                .outOfResources, "This process has too many open files and connections. Raise the limit (ulimit -n).",
                cause: "\(Errno(rawValue: errno))")
        }
        return FileDescriptor(rawValue: copy)
    }

    private func error(_ code: CURLcode) -> CurlEngineError {
        let error = plainError(code)
        // Either a reused connection broke while the request was being sent, or libcurl sent the request, lost the connection, and tried to establish
        // another one.
        let isReuseFailure = isWithoutResponse(error) && handle.get(CURLINFO_NUM_CONNECTS) == 0
        guard requestsBegun > 0, !isRepeatable, error.isConnectFailure || isReuseFailure else { return error }
        var unknown = CurlEngineError(
            .outcomeUnknown, "The connection broke after the request was sent, before any response arrived.", cause: error.cause)
        unknown.wasServerGone = code == CURLE_COULDNT_CONNECT && error.kind == .refused
        return unknown
    }

    private func plainError(_ code: CURLcode) -> CurlEngineError {
        let proxyStatus = handle.get(CURLINFO_HTTP_CONNECTCODE)
        if code == CURLE_RECV_ERROR || code == CURLE_COULDNT_CONNECT, proxyStatus >= 300 {
            let proxy = pending.request.connection.proxy.descriptionForMessages.map { "The proxy \($0)" } ?? "A proxy"
            var error = CurlEngineError(.proxyRefused, "\(proxy) responded with \(proxyStatus) instead of connecting to the server.")
            error.proxyStatus = proxyStatus
            return error
        }
        if code == CURLE_COULDNT_CONNECT, handle.lacksDescriptors {
            return CurlEngineError(
                .outOfResources, "This process has too many open files and connections. Raise the limit (ulimit -n).",
                cause: handle.describe(code))
        }
        // If a response line exceeds libcurl's limit of 100 KiB, libcurl reports CURLE_OUT_OF_MEMORY, or CURLE_TOO_LARGE (100) since 8.6.
        if code == CURLE_OUT_OF_MEMORY || code.rawValue == 100, requestsBegun > 0 {
            return CurlEngineError(.invalidResponse, "The server's response has a line that is too long.", cause: handle.describe(code))
        }
        var error = CurlEngineError(code, text: handle.describe(code))
        error.isUnanswered = error.isHandshakeCut || isConnectionUnanswered(error)
        return error
    }

    /// Whether the request used a new connection that ended before any byte of a response, and at most 4 MiB of the body were sent.
    private func isConnectionUnanswered(_ error: CurlEngineError) -> Bool {
        isWithoutResponse(error) && handle.get(CURLINFO_NUM_CONNECTS) > 0 && upload.sent.accepted <= CurlEngineError.maximumBuffered
    }

    /// Whether the connection ended before any byte of a response. False for an HTTP/2 error, because the server has sent frames.
    private func isWithoutResponse(_ error: CurlEngineError) -> Bool {
        error.kind == .connectionLost && !error.isHTTP2Failure && response.isEmpty
    }
}

extension CurlEngineError {
    /// Whether the connection could not be established, so that no request was sent over it.
    fileprivate var isConnectFailure: Bool {
        [.hostNotFound, .refused, .timedOut, .tlsNotTrusted, .tlsFailed, .proxyRefused, .outOfResources].contains(kind)
    }
}
