import CCurl
import TransferCore

extension Transfer {
    /// Points libcurl's callbacks at this transfer. None of them allocates on the way of the body.
    func setCallbacks() {
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
            // Any other number than that of the bytes ends the transfer (CURLOPT_WRITEFUNCTION(3)).
            return unsafe transfer.response.addBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
        }

        unsafe ccurl_setopt_pointer(easy, CURLOPT_HEADERDATA, context)
        unsafe ccurl_setopt_data_callback(easy, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            guard let transfer = unsafe Transfer.from(context) else { return 0 }
            if unsafe transfer.response.addHeaderLine(UnsafeRawBufferPointer(start: bytes, count: size * count)) { return size * count }
            transfer.failure = CurlEngineError(.badAnswer, "The server's answer has more headers than any sensible one.")
            return 0
        }

        set(CURLOPT_NOPROGRESS, 0)
        unsafe ccurl_setopt_pointer(easy, CURLOPT_XFERINFODATA, context)
        unsafe ccurl_setopt_progress_callback(easy) { context, _, _, _, uploaded in
            unsafe Transfer.from(context)?.upload.report(Int64(uploaded))
            return 0
        }

        unsafe ccurl_setopt_pointer(easy, CURLOPT_PREREQDATA, context)
        unsafe ccurl_setopt_prereq_callback(easy) { context, _, _, _, _ in
            guard let transfer = unsafe Transfer.from(context) else { return CInt(CURL_PREREQFUNC_ABORT) }
            transfer.requestsBegun += 1
            if transfer.requestsBegun == 1 || transfer.isRepeatable { return CInt(CURL_PREREQFUNC_OK) }
            // libcurl sends a request again, without telling, when a reused connection closes before the first byte of the answer. The
            // server may have acted on the first one.
            transfer.failure = CurlEngineError(
                .outcomeUnknown, "The connection broke after the request was sent and before any answer.")
            return CInt(CURL_PREREQFUNC_ABORT)
        }
    }
}
