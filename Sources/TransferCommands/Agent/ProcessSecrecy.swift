#if canImport(Glibc)
    import Glibc
#endif

/// Keeps what this process knows from other processes of the same user.
enum ProcessSecrecy {
    /// Lets no other process read the memory and the environment of this one, but for the superuser's, and no crash write them to a file
    /// (prctl(2), PR_SET_DUMPABLE): both hold secrets. Programs that it starts are as ever.
    static func begin() {
        #if os(Linux)
            // Takes a variable number of arguments, which Swift can't call; on Linux those are passed as all others are.
            typealias Control = @convention(c) (CInt, CUnsignedLong, CUnsignedLong, CUnsignedLong, CUnsignedLong) -> CInt
            guard let symbol = unsafe dlsym(nil, "prctl") else { return }
            _ = unsafe unsafeBitCast(symbol, to: Control.self)(setDumpable, 0, 0, 0, 0)
        #endif
    }

    /// PR_SET_DUMPABLE of linux/prctl.h.
    private static let setDumpable: CInt = 4
}
