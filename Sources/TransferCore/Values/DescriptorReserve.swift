#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The highest file descriptors that the process may open (getrlimit(2), RLIMIT_NOFILE), which are reserved for system libraries.
///
/// System libraries also open files, and not all of them handle a failure: libdispatch aborts the process if it can't observe its threads.
/// open(2) returns the lowest free descriptor, so a high number means that few descriptors are free.
enum DescriptorReserve {
    /// Returns the first reserved descriptor. `ccurl_open_socket` applies the same rule to libcurl's sockets.
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

    /// Checks the result of a call that opens a descriptor, and returns it. If the descriptor is reserved, closes it, sets `errno` to
    /// EMFILE and returns -1.
    static func admit(_ descriptor: CInt) -> CInt {
        guard descriptor >= 0, rlim_t(descriptor) >= first() else { return descriptor }
        close(descriptor)
        errno = EMFILE
        return -1
    }
}
