package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension FilePath {
    /// The working directory of this process, or the root folder if the working directory was removed.
    ///
    /// `FileManager.currentDirectoryPath` can't return paths that are not UTF-8.
    package static var workingFolder: FilePath {
        guard let path = unsafe getcwd(nil, 0) else { return "/" }
        defer { unsafe free(path) }
        return unsafe FilePath(platformString: path)
    }

    /// Resolves a relative path against this folder. Returns an absolute or empty path unchanged.
    func resolving(_ path: FilePath) -> FilePath {
        path.isEmpty ? path : pushing(path)
    }
}
