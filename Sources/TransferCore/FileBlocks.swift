package import SystemPackage

#if canImport(Glibc)
    import Glibc
#endif

/// The blocks that a file has on its disk. Its size never changes by this. Every call blocks.
package enum FileBlocks {
    #if canImport(Glibc)
        private typealias Function = @convention(c) (CInt, CInt, off_t, off_t) -> CInt

        /// fallocate(2), which glibc has since 2.10 and declares for GNU programs only, so that Swift does not import it.
        private static let fallocate: Function? = {
            guard let symbol = unsafe dlsym(nil, "fallocate64") else { return nil }
            // The symbol of that name is a function with these parameters, on each platform that has it; off64_t is Swift's off_t.
            return unsafe unsafeBitCast(symbol, to: Function.self)
        }()

        private static let keepSize: CInt = 0x01
        private static let punchHole: CInt = 0x02
    #endif

    /// Gives a range of a file back to the disk; it reads as zeros afterwards. Does nothing where the system or the file system can't.
    package static func punch(_ file: FileDescriptor, _ range: Range<Int64>) {
        #if canImport(Glibc)
            _ = fallocate?(file.rawValue, keepSize | punchHole, off_t(range.lowerBound), off_t(range.count))
        #endif
    }

    /// Takes the blocks for the first bytes of a file from the disk, so that nothing else can use them. Does nothing where the system or the
    /// file system can't.
    ///
    /// - Throws: `Errno.noSpace` if the disk has too few; the file has no more blocks than before then.
    package static func reserve(_ file: FileDescriptor, _ bytes: Int64) throws(Errno) {
        #if canImport(Glibc)
            guard let fallocate, bytes > 0 else { return }
            guard fallocate(file.rawValue, keepSize, 0, off_t(bytes)) != 0, errno == ENOSPC else { return }
            // Some file systems keep what they could take.
            var status = stat()
            if unsafe fstat(file.rawValue, &status) == 0 { _ = ftruncate(file.rawValue, status.st_size) }
            throw .noSpace
        #endif
    }
}
