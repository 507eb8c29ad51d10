#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// This process's limit on open files and connections.
enum DescriptorLimit {
    /// Raises the soft limit to the hard limit, at most 65,536 (getrlimit(2)). The default soft limit is often 1,024, and each transfer
    /// needs a connection and a file.
    static func raise() {
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        #else
            let resource = RLIMIT_NOFILE
        #endif
        var limit = rlimit()
        guard unsafe getrlimit(resource, &limit) == 0 else { return }
        let wanted = min(limit.rlim_max, 65_536)
        guard limit.rlim_cur < wanted else { return }
        limit.rlim_cur = wanted
        _ = unsafe setrlimit(resource, &limit)
    }
}
