#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The last file descriptors below the limit of the process (getrlimit(2), RLIMIT_NOFILE). Transfers leave them free.
///
/// The system's libraries open files, too, and don't all handle a failure: libdispatch ends the process if it can't observe its threads. Descriptors
/// are allotted from the lowest free number (open(2)), so a high number means that few are free.
enum DescriptorReserve {
    /// The same rule is in `ccurl_open_socket`, for libcurl's sockets.
    private static func first() -> rlim_t {
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let resource = RLIMIT_NOFILE
        #endif
        var limit = rlimit()
        guard unsafe getrlimit(resource, &limit) == 0 else { return .max }
        return limit.rlim_cur - min(limit.rlim_cur / 8, 32)
    }

    /// Returns a new descriptor, or closes it and sets `errno` to EMFILE if it is one of the last.
    static func admit(_ descriptor: CInt) -> CInt {
        guard descriptor >= 0, rlim_t(descriptor) >= first() else { return descriptor }
        close(descriptor)
        errno = EMFILE
        return -1
    }
}
