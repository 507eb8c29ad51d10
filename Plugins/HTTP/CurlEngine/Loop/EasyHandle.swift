import CCurl

/// A libcurl handle for one transfer at a time, with its buffer for error text. Confined to the loop's thread.
@safe final class EasyHandle {
    let pointer: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private let socketFailure: UnsafeMutablePointer<CInt>
    /// The number of bytes to read from a socket in one call. Below the size at which the C library asks the system for each allocation
    /// (mallopt(3)).
    private static let readBufferSize = 100 * 1024

    init() throws(CurlEngineError) {
        guard let pointer = unsafe curl_easy_init() else {
            throw CurlEngineError(.outOfResources, "This machine is out of memory.")
        }
        unsafe self.pointer = unsafe pointer
        unsafe errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
        unsafe errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
        unsafe socketFailure = .allocate(capacity: 1)
        unsafe socketFailure.initialize(to: 0)
        setDefaults()
    }

    deinit {
        unsafe curl_easy_cleanup(pointer)
        unsafe errorText.deallocate()
        unsafe socketFailure.deallocate()
    }

    /// Resets the handle for the next transfer.
    func reset() {
        unsafe ccurl_setopt_pointer(pointer, CURLOPT_SHARE, nil)
        // Frees the buffer; each transfer with a body sets its own size.
        set(CURLOPT_UPLOAD_BUFFERSIZE, 16 * 1024)
        unsafe curl_easy_reset(pointer)
        unsafe errorText[0] = 0
        unsafe socketFailure.pointee = 0
        setDefaults()
    }

    private func setDefaults() {
        unsafe ccurl_setopt_pointer(pointer, CURLOPT_ERRORBUFFER, errorText)
        unsafe ccurl_setopt_open_socket(pointer, socketFailure)
        // The same for all transfers, because libcurl keeps the buffer of the first one.
        set(CURLOPT_BUFFERSIZE, Self.readBufferSize)
    }

    /// Whether no socket could be opened since the last reset because too few file descriptors are free.
    var lacksDescriptors: Bool { unsafe socketFailure.pointee != 0 }

    /// libcurl's description of how the transfer ended.
    func describe(_ code: CURLcode) -> String {
        unsafe String(cString: errorText[0] == 0 ? curl_easy_strerror(code) : UnsafePointer(errorText))
    }

    func set(_ option: CURLoption, _ value: Int) {
        // Fails only for options that libcurl was built without; all builds have those used here.
        unsafe ccurl_setopt_long(pointer, option, value)
    }

    func set(_ option: CURLoption, _ value: String) throws(CurlEngineError) {
        let code = unsafe ccurl_setopt_string(pointer, option, value)
        guard code == CURLE_OK else { throw CurlEngineError(code, text: unsafe String(cString: curl_easy_strerror(code))) }
    }

    func get(_ information: CURLINFO) -> Int {
        var value = 0
        unsafe ccurl_getinfo_long(pointer, information, &value)
        return value
    }

    func getString(_ information: CURLINFO) -> String? {
        var value: UnsafeMutablePointer<CChar>?
        unsafe ccurl_getinfo_string(pointer, information, &value)
        return unsafe value.map { unsafe String(cString: $0) }
    }
}

/// Handles for later transfers: making a handle costs several allocations and its caches.
struct EasyHandles {
    /// The number of handles to keep.
    let limit: Int
    private var idle: [EasyHandle] = []

    init(limit: Int) {
        self.limit = limit
    }

    mutating func take() throws(CurlEngineError) -> EasyHandle {
        if let handle = idle.popLast() { return handle }
        return try EasyHandle()
    }

    /// - Parameter isClean: Whether its transfer succeeded and had no trailers. A reset does not undo everything: in libcurl 7.88, the next
    ///   transfer of a handle that failed in its trailers waits forever, and the next one with trailers of a handle that sent some uses
    ///   freed memory.
    mutating func giveBack(_ handle: EasyHandle, isClean: Bool) {
        handle.reset()
        if isClean, idle.count < limit { idle.append(handle) }
    }

    mutating func removeAll() {
        idle.removeAll()
    }
}
