import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What is at a local path: a readable file or folder, or the reason why it can't be sent.
enum LocalFile {
    case file(size: Int64)
    case folder

    /// Looks at a path with stat(2) and access(2), without opening anything. Follows links. Blocks.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/sourceLost``.
    init(at path: FilePath) throws(TransferError) {
        let found: Result<LocalFile, TransferError> = unsafe path.withPlatformString { name in
            var status = stat()
            guard unsafe stat(name, &status) == 0 else { return .failure(Self.unavailable(path, Errno(rawValue: errno))) }
            let isFolder = status.st_mode & S_IFMT == S_IFDIR
            guard isFolder || status.st_mode & S_IFMT == S_IFREG else { return .failure(Self.notSendable(path, mode: status.st_mode)) }
            guard unsafe faccessat(AT_FDCWD, name, isFolder ? R_OK | X_OK : R_OK, AT_EACCESS) == 0 else {
                return .failure(.sourceUnavailable(path, errno: errno))
            }
            return .success(isFolder ? .folder : .file(size: Int64(status.st_size)))
        }
        self = try found.get()
    }

    /// The error for what is neither a file nor a folder.
    static func notSendable(_ path: FilePath, mode: mode_t) -> TransferError {
        let what =
            switch mode & S_IFMT {
            case S_IFIFO: "a FIFO"
            case S_IFSOCK: "a socket"
            case S_IFCHR, S_IFBLK: "a device"
            default: "neither a file nor a folder"
            }
        return TransferError(.sourceLost, .notARegularFile, "\(path) is \(what), not a regular file; only files and folders can be sent.")
    }

    /// The error for what can't be looked at; says so if a link is to blame.
    static func unavailable(_ path: FilePath, _ error: Errno) -> TransferError {
        if error == .tooManySymbolicLinkLevels {
            return TransferError(
                .sourceLost, .notReadable, "\(path) can't be read: following its symbolic links has no end.", cause: error.description)
        }
        var status = stat()
        if error == .noSuchFileOrDirectory, unsafe path.withPlatformString({ unsafe lstat($0, &status) }) == 0,
            status.st_mode & S_IFMT == S_IFLNK
        {
            return TransferError(
                .sourceLost, .noSuchFile, "\(path) is a symbolic link to something that does not exist.", cause: error.description)
        }
        return .sourceUnavailable(path, errno: error.rawValue)
    }
}
