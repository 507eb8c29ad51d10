import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The type of a readable local file or folder that can be sent.
enum LocalFile {
    case file(size: Int64)
    case folder

    /// Checks a path with stat(2) and faccessat(2), without opening the file. Follows symbolic links. Blocks.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/sourceLost`` that explains why the path can't be sent.
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

    /// Whether the last component of a path is a symbolic link. Blocks.
    static func isLink(_ path: FilePath) -> Bool {
        var status = stat()
        return unsafe path.withPlatformString { unsafe lstat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFLNK
    }

    /// The error for a path that is neither a regular file nor a folder.
    static func notSendable(_ path: FilePath, mode: mode_t) -> TransferError {
        let what =
            switch mode & S_IFMT {
            case S_IFIFO: "a FIFO"
            case S_IFSOCK: "a socket"
            case S_IFCHR, S_IFBLK: "a device"
            default: "neither a file nor a folder"
            }
        return TransferError(.sourceLost, .notARegularFile, "\(path) is \(what). Only regular files and folders can be sent.")
    }

    /// The error for a path that can't be inspected or opened. If the path is a broken link or part of a link cycle, the message explains this.
    static func unavailable(_ path: FilePath, _ error: Errno) -> TransferError {
        if error == .tooManySymbolicLinkLevels {
            return TransferError(
                .sourceLost, .notReadable, "Cannot read \(path): too many levels of symbolic links.", cause: error.description)
        }
        var status = stat()
        if error == .noSuchFileOrDirectory, unsafe path.withPlatformString({ unsafe lstat($0, &status) }) == 0,
            status.st_mode & S_IFMT == S_IFLNK
        {
            return TransferError(
                .sourceLost, .noSuchFile, "\(path) is a symbolic link whose target does not exist.", cause: error.description)
        }
        return .sourceUnavailable(path, errno: error.rawValue)
    }
}
