import CCurl

/// A libcurl easy handle, with a buffer for its error text. It serves one transfer at a time. Used only on the thread of ``CurlLoop``.
@safe final class EasyHandle {
    let pointer: UnsafeMutableRawPointer
    private let errorText: UnsafeMutablePointer<CChar>
    private let socketFailure: UnsafeMutablePointer<CInt>
    /// The number of bytes to read from a socket in one call. The number is below M_MMAP_THRESHOLD (mallopt(3)), beyond which the C library
    /// requests new memory from the system for every allocation.
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

    func reset() {
        unsafe ccurl_setopt_pointer(pointer, CURLOPT_SHARE, nil)
        // Makes libcurl free the upload buffer. Each transfer with a body sets its own size.
        set(CURLOPT_UPLOAD_BUFFERSIZE, 16 * 1024)
        unsafe curl_easy_reset(pointer)
        unsafe errorText[0] = 0
        unsafe socketFailure.pointee = 0
        setDefaults()
    }

    private func setDefaults() {
        unsafe ccurl_setopt_pointer(pointer, CURLOPT_ERRORBUFFER, errorText)
        unsafe ccurl_setopt_open_socket(pointer, socketFailure)
        // All transfers use the same size, because libcurl keeps the buffer of the first transfer.
        set(CURLOPT_BUFFERSIZE, Self.readBufferSize)
    }

    /// Whether a socket could not be opened since the last reset, because no file descriptor was free.
    var lacksDescriptors: Bool { unsafe socketFailure.pointee != 0 }

    func describe(_ code: CURLcode) -> String {
        unsafe String(cString: errorText[0] == 0 ? curl_easy_strerror(code) : UnsafePointer(errorText))
    }

    func set(_ option: CURLoption, _ value: Int) {
        // This fails only for options that libcurl was built without. All builds have the options used here.
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

/// A cache of idle handles. A new handle for each transfer would cost several allocations and lose libcurl's caches.
struct EasyHandles {
    /// The maximum number of idle handles.
    let limit: Int
    private var idle: [EasyHandle] = []

    init(limit: Int) {
        self.limit = limit
    }

    mutating func take() throws(CurlEngineError) -> EasyHandle {
        if let handle = idle.popLast() { return handle }
        return try EasyHandle()
    }

    /// Puts a handle back into the cache, or drops it.
    ///
    /// - Parameter isClean: Whether the handle's transfer succeeded and had no trailers. Otherwise, the handle is dropped, because a reset does not
    ///   undo everything. In libcurl 7.88, after a transfer that failed in its trailers, the handle's next transfer waits forever. After a transfer
    ///   with trailers, the next transfer with trailers uses freed memory.
    mutating func giveBack(_ handle: EasyHandle, isClean: Bool) {
        handle.reset()
        if isClean, idle.count < limit { idle.append(handle) }
    }

    mutating func removeAll() {
        idle.removeAll()
    }
}
