import CCurl
import TransferCore

extension Transfer {
    func setCallbacks() {
        let easy = unsafe handle.pointer
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe ccurl_setopt_pointer(easy, CURLOPT_PRIVATE, context)

        unsafe ccurl_setopt_pointer(easy, CURLOPT_READDATA, context)
        unsafe ccurl_setopt_data_callback(easy, CURLOPT_READFUNCTION) { bytes, size, count, context in
            guard let transfer = unsafe Transfer.from(context) else { return Int(CURL_READFUNC_ABORT) }
            switch unsafe transfer.upload.read(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count)) {
            case .bytes(let count): return count
            case .pause: return Int(CURL_READFUNC_PAUSE)
            case .failed(let error):
                transfer.failure = error
                return Int(CURL_READFUNC_ABORT)
            }
        }

        unsafe ccurl_setopt_pointer(easy, CURLOPT_WRITEDATA, context)
        unsafe ccurl_setopt_data_callback(easy, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            guard let transfer = unsafe Transfer.from(context) else { return 0 }
            return unsafe transfer.receiveBody(UnsafeRawBufferPointer(start: bytes, count: size * count))
        }

        unsafe ccurl_setopt_pointer(easy, CURLOPT_HEADERDATA, context)
        unsafe ccurl_setopt_data_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            guard let transfer = unsafe Transfer.from(context) else { return 0 }
            return unsafe transfer.receiveHeaderLine(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
        }

        handle.set(CURLOPT_NOPROGRESS, 0)
        unsafe ccurl_setopt_pointer(easy, CURLOPT_XFERINFODATA, context)
        unsafe ccurl_setopt_progress_callback(easy) { context, _, _, _, uploaded in
            unsafe Transfer.from(context)?.upload.report(Int64(uploaded))
            return 0
        }

        unsafe ccurl_setopt_pointer(easy, CURLOPT_PREREQDATA, context)
        unsafe ccurl_setopt_prereq_callback(easy) { context, _, _, _, _ in
            guard let transfer = unsafe Transfer.from(context) else { return CInt(CURL_PREREQFUNC_ABORT) }
            return transfer.beginRequest() ? CInt(CURL_PREREQFUNC_OK) : CInt(CURL_PREREQFUNC_ABORT)
        }

        if pending.request.trailers != nil {
            unsafe ccurl_setopt_pointer(easy, CURLOPT_TRAILERDATA, context)
            unsafe ccurl_setopt_trailer_callback(easy) { list, context in
                guard let transfer = unsafe Transfer.from(context), let list = unsafe list else { return CURL_TRAILERFUNC_ABORT }
                return unsafe transfer.appendTrailers(to: &list.pointee) ? CURL_TRAILERFUNC_OK : CURL_TRAILERFUNC_ABORT
            }
        }
    }

    /// Passes bytes of the response's body to the download or to the collector.
    ///
    /// - Returns: `bytes.count` to continue, `CURL_WRITEFUNC_PAUSE` to pause, or 0 to end the transfer (CURLOPT_WRITEFUNCTION(3)).
    private func receiveBody(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard download?.isAccepted == true else { return unsafe response.addBody(bytes) ? bytes.count : 0 }
        switch unsafe download?.accept(bytes) {
        case .accepted?, nil: return bytes.count
        case .pause?: return Int(CURL_WRITEFUNC_PAUSE)
        case .failed(let error)?:
            failure = error
            return 0
        }
    }

    /// Collects a header line. Passes each complete interim response, except 100 and 101, to the request's observer. After the last header
    /// line of the final response, calls the sink, which accepts or declines the body.
    ///
    /// - Returns: Whether to continue; false ends the transfer.
    private func receiveHeaderLine(_ line: UnsafeRawBufferPointer) -> Bool {
        guard unsafe response.addHeaderLine(line) else {
            failure = CurlEngineError(.invalidResponse, "The headers of the server's response are too large.")
            return false
        }
        if let observe = pending.request.observeInterimResponse, let head = response.interimHead { observe(head) }
        guard download?.isAccepted == nil, response.isFinal else { return true }
        do {
            try download?.begin(response.head)
        } catch {
            failure = error
            return false
        }
        return true
    }

    /// Counts how often libcurl sends the request, and prevents repetitions that could have a second effect on the server. libcurl silently repeats
    /// a request if a reused connection closes before the first byte of the response, although the server may have acted on the request. libcurl
    /// also repeats a request after a 417.
    ///
    /// - Returns: Whether libcurl may send the request.
    private func beginRequest() -> Bool {
        requestsBegun += 1
        if requestsBegun == 1 || isRepeatable { return true }
        if response.isFinal, response.head.status == 417 {
            failure = CurlEngineError(.expectationRefused, "The server rejects \"Expect: 100-continue\".")
            return false
        }
        failure = CurlEngineError(.outcomeUnknown, "The connection broke after the request was sent, before any response arrived.")
        return false
    }

    /// Adds the trailers to a list that libcurl frees (CURLOPT_TRAILERFUNCTION(3)).
    ///
    /// - Returns: Whether to continue; false ends the transfer.
    private func appendTrailers(to list: inout UnsafeMutablePointer<curl_slist>?) -> Bool {
        do {
            let trailers = try pending.request.trailers?() ?? HTTPHeaders()
            try trailers.validate()
            for field in trailers {
                guard let longer = unsafe curl_slist_append(list, "\(field.name): \(field.value)") else {
                    throw CurlEngineError(.outOfResources, "This machine is out of memory.")
                }
                unsafe list = unsafe longer
            }
            return true
        } catch {
            failure = error
            return false
        }
    }
}
