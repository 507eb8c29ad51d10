#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// This process's limit on open files and connections (getrlimit(2), RLIMIT_NOFILE). The highest descriptors are reserved for system
/// libraries.
///
/// System libraries also open files, and not all of them handle a failure: libdispatch aborts the process if it can't observe its threads.
/// open(2) returns the lowest free descriptor, so a high number means that few descriptors are free.
package enum DescriptorLimit {
    #if canImport(Glibc)
        private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    #else
        private static let resource = RLIMIT_NOFILE
    #endif

    /// Raises the soft limit to the hard limit, at most 65,536. The default soft limit is often 1,024, and each transfer needs a connection
    /// and a file.
    package static func raise() {
        var limit = rlimit()
        guard unsafe getrlimit(resource, &limit) == 0 else { return }
        let wanted = min(limit.rlim_max, 65_536)
        guard limit.rlim_cur < wanted else { return }
        limit.rlim_cur = wanted
        _ = unsafe setrlimit(resource, &limit)
    }

    /// Returns the lowest reserved descriptor. `ccurl_open_socket` applies the same rule to libcurl's sockets.
    private static func firstReserved() -> rlim_t {
        var limit = rlimit()
        guard unsafe getrlimit(resource, &limit) == 0 else { return .max }
        return limit.rlim_cur - min(limit.rlim_cur / 8, 32)
    }

    /// Returns the result of a call that opens a descriptor, unless the new descriptor is reserved. In that case, closes the descriptor, sets `errno`
    /// to EMFILE and returns -1.
    static func closeIfReserved(_ descriptor: CInt) -> CInt {
        guard descriptor >= 0, rlim_t(descriptor) >= firstReserved() else { return descriptor }
        close(descriptor)
        errno = EMFILE
        return -1
    }
}
