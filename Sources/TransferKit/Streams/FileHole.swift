import SystemPackage

#if canImport(Glibc)
    import Glibc
#endif

/// Gives a part of a file back to the disk; it reads as zeros afterwards, and the file keeps its size.
enum FileHole {
    #if canImport(Glibc)
        private typealias Function = @convention(c) (CInt, CInt, off_t, off_t) -> CInt

        /// fallocate(2), which glibc has since 2.10 and declares for GNU programs only, so that Swift does not import it.
        private static let fallocate: Function? = {
            guard let symbol = unsafe dlsym(nil, "fallocate64") else { return nil }
            // The symbol of that name is a function with these parameters, on each platform that has it; off64_t is Swift's off_t.
            return unsafe unsafeBitCast(symbol, to: Function.self)
        }()
    #endif

    /// Does nothing where the system or the file system can't.
    static func punch(_ file: FileDescriptor, _ range: Range<Int64>) {
        #if canImport(Glibc)
            let (keepSize, punchHole): (CInt, CInt) = (0x01, 0x02)
            _ = fallocate?(file.rawValue, keepSize | punchHole, off_t(range.lowerBound), off_t(range.count))
        #endif
    }
}
