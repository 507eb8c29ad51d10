#if canImport(Glibc)
    import Glibc
#endif

/// Hides the memory of this process from other processes of the same user.
package enum ProcessMemoryProtection {
    /// Prevents core dumps. Also prevents other processes, except root's, from reading the secrets in this process's memory and environment
    /// (prctl(2), PR_SET_DUMPABLE). Programs that this process starts are not affected.
    package static func enable() {
        #if os(Linux)
            // Swift can't call variadic C functions. On Linux, the calling convention passes variadic integer arguments like other arguments.
            typealias Control = @convention(c) (CInt, CUnsignedLong, CUnsignedLong, CUnsignedLong, CUnsignedLong) -> CInt
            guard let symbol = unsafe dlsym(nil, "prctl") else { return }
            _ = unsafe unsafeBitCast(symbol, to: Control.self)(setDumpable, 0, 0, 0, 0)
        #endif
    }

    /// PR_SET_DUMPABLE of linux/prctl.h.
    private static let setDumpable: CInt = 4
}
