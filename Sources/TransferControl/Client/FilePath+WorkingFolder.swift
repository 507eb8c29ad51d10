package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension FilePath {
    /// The working folder of this process, byte for byte: Foundation can't tell names that are not UTF-8. The root if it is gone.
    package static var workingFolder: FilePath {
        guard let path = unsafe getcwd(nil, 0) else { return "/" }
        defer { unsafe free(path) }
        return unsafe FilePath(platformString: path)
    }
}
