import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// How much there is left to write on a file system.
enum DiskSpace {
    /// Bytes that a process without privileges can still write where a folder is (statvfs(3)); nil if that can't be told. Blocks.
    static func free(at folder: FilePath) -> Int64? {
        var status = statvfs()
        guard unsafe folder.withPlatformString({ unsafe statvfs($0, &status) }) == 0 else { return nil }
        let (bytes, isBeyond) = Int64(clamping: status.f_bavail).multipliedReportingOverflow(by: Int64(clamping: status.f_frsize))
        return isBeyond ? .max : bytes
    }
}
