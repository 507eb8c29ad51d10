package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The free space of file systems.
package enum DiskSpace {
    /// Returns the number of bytes that a process without privileges can write in a folder (statvfs(3)); nil if the number is unknown, for example on
    /// an in-memory file system without a limit. Blocks.
    package static func free(at folder: FilePath) -> Int64? {
        status(of: folder).flatMap { $0.f_blocks > 0 ? bytes(Int64(clamping: $0.f_bavail), $0) : nil }
    }

    /// Returns the given minimum free space, in bytes, limited to a sixteenth of the size of the folder's file system. Blocks.
    package static func reserve(_ minimum: Int64, at folder: FilePath) -> Int64 {
        status(of: folder).map { min(minimum, bytes(Int64(clamping: $0.f_blocks), $0) / 16) } ?? minimum
    }

    private static func bytes(_ blocks: Int64, _ status: statvfs) -> Int64 {
        let (bytes, overflow) = blocks.multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
        return overflow ? .max : bytes
    }

    /// Returns the size in bytes of the file system's allocation blocks; nil if it can't be determined. Blocks.
    static func blockSize(at folder: FilePath) -> Int64? { status(of: folder).map { Int64(clamping: $0.f_frsize) } }

    private static func status(of folder: FilePath) -> statvfs? {
        var status = statvfs()
        return unsafe folder.withPlatformString({ unsafe statvfs($0, &status) }) == 0 ? status : nil
    }
}
