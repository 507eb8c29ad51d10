package import SystemPackage

#if canImport(Glibc)
    import Glibc
#endif

/// Frees and reserves disk blocks of a file without changing its size. All functions block.
package enum FileBlocks {
    #if canImport(Glibc)
        private typealias Function = @convention(c) (CInt, CInt, off_t, off_t) -> CInt

        /// fallocate(2). glibc has had this function since version 2.10, but declares it only with `_GNU_SOURCE`, so Swift does not import it.
        private static let fallocate: Function? = {
            guard let symbol = unsafe dlsym(nil, "fallocate64") else { return nil }
            // The symbol is a function with these parameters on each platform that has it; off64_t is Swift's off_t.
            return unsafe unsafeBitCast(symbol, to: Function.self)
        }()

        private static let keepSize: CInt = 0x01
        private static let punchHole: CInt = 0x02
    #endif

    /// Frees the blocks of a range, so that the range then reads as zeros. Does nothing if the system or the file system does not support this.
    package static func punch(_ file: FileDescriptor, _ range: Range<Int64>) {
        #if canImport(Glibc)
            _ = fallocate?(file.rawValue, keepSize | punchHole, off_t(range.lowerBound), off_t(range.count))
        #endif
    }

    /// Reserves the blocks for the first `bytes` bytes of a file. Does nothing if the system or the file system does not support this.
    ///
    /// - Returns: Whether the blocks are reserved.
    /// - Throws: `Errno.noSpace` if the disk or the user's quota has too few blocks. After this error, no block stays reserved.
    @discardableResult
    package static func reserve(_ file: FileDescriptor, _ bytes: Int64) throws(Errno) -> Bool {
        #if canImport(Glibc)
            guard let fallocate else { return false }
            return try reserve(file, bytes) { fallocate(file.rawValue, keepSize, 0, off_t(bytes)) == 0 ? 0 : errno }
        #else
            return false
        #endif
    }

    #if canImport(Glibc)
        /// The implementation of ``reserve(_:_:)``. Tests inject a replacement for fallocate(2).
        ///
        /// - Parameter allocate: Returns 0 or an error number.
        @discardableResult
        package static func reserve(_ file: FileDescriptor, _ bytes: Int64, allocate: () -> CInt) throws(Errno) -> Bool {
            guard bytes > 0 else { return false }
            let code = allocate()
            guard [ENOSPC, EDQUOT].contains(code) else { return code == 0 }
            // Some file systems keep the blocks that were reserved before the failure. Truncating to the current size frees these blocks.
            var status = stat()
            if unsafe fstat(file.rawValue, &status) == 0 { _ = ftruncate(file.rawValue, status.st_size) }
            throw .noSpace
        }
    #endif
}
