import Foundation
public import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What tells one content of a local file from another without reading it.
///
/// Stored beside each checkpoint, so that an upload is never continued with bytes of another version.
public struct SourceIdentity: Hashable, Sendable, Codable {
    /// The size in bytes.
    public var size: Int64
    /// The time of the last modification, in nanoseconds since 1970.
    public var modificationTime: Int64
    /// The inode number; only comparable within one boot.
    public var inode: UInt64
    /// The device number; only comparable within one boot.
    public var device: UInt64
    /// Which boot of which machine the inode and device numbers belong to.
    public var bootID: String

    /// What the start and the end of the part that is confirmed were, made by the queue and stored with a checkpoint; not part of any
    /// comparison of two identities.
    package var prefixDigest: String?

    /// Makes an identity of its parts.
    public init(size: Int64, modificationTime: Int64, inode: UInt64, device: UInt64, bootID: String) {
        self.size = size
        self.modificationTime = modificationTime
        self.inode = inode
        self.device = device
        self.bootID = bootID
    }

    /// How a file differs from what it was.
    public enum Difference: Hashable, Sendable {
        /// The content is certainly or very probably another; the sentence says what changed.
        case content(String)
        /// Size and time are the same, but it is another file on disk: only reading it can tell.
        case fileReplaced
    }

    /// Compares with the identity taken earlier, in the manner of `rsync`: size and modification time decide.
    ///
    /// Inode and device are only compared within one boot, as both may change over a restart or a remount.
    ///
    /// - Returns: nil if the file is the same.
    public func difference(from earlier: SourceIdentity) -> Difference? {
        if size != earlier.size {
            return .content("its size was \(earlier.size) bytes and is now \(size)")
        }
        if modificationTime != earlier.modificationTime {
            return .content("it was modified since")
        }
        if bootID == earlier.bootID, inode != earlier.inode || device != earlier.device {
            return .fileReplaced
        }
        return nil
    }

    /// Reads the identity of the regular file at a path, following symbolic links.
    ///
    /// Blocks for as long as the file system takes: not for the cooperative thread pool if that may be a network.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/sourceLost`` if there is none or it is no regular file.
    public init(ofFileAt path: FilePath) throws(TransferError) {
        var status = stat()
        let result = unsafe path.withPlatformString { unsafe stat($0, &status) }
        guard result == 0 else { throw .sourceUnavailable(path, errno: errno) }
        try self.init(status, path: path)
    }

    /// Reads the identity of an open file.
    ///
    /// - Parameter path: Named in errors only.
    /// - Throws: As ``init(ofFileAt:)``.
    public init(of descriptor: FileDescriptor, path: FilePath) throws(TransferError) {
        var status = stat()
        guard unsafe fstat(descriptor.rawValue, &status) == 0 else { throw .sourceUnavailable(path, errno: errno) }
        try self.init(status, path: path)
    }

    private init(_ status: stat, path: FilePath) throws(TransferError) {
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw TransferError(.sourceLost, .notARegularFile, "\(path) is not a regular file.")
        }
        #if canImport(Darwin)
            let modified = status.st_mtimespec
        #else
            let modified = status.st_mtim
        #endif
        size = Int64(status.st_size)
        modificationTime = Int64(modified.tv_sec) &* 1_000_000_000 &+ Int64(modified.tv_nsec)
        inode = UInt64(status.st_ino)
        device = UInt64(bitPattern: Int64(status.st_dev))
        bootID = Self.currentBootID
    }

    package static let currentBootID: String = {
        // Linux: proc(5). Elsewhere nothing is as cheap; an empty ID compares inode and device always, which errs on the safe side.
        let contents = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return contents?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    }()
}

extension TransferError {
    /// The error for a local file that can't be opened or examined.
    package static func sourceUnavailable(_ path: FilePath, errno code: CInt) -> TransferError {
        let reason = Errno(rawValue: code).description
        switch code {
        case ENOENT:
            return TransferError(.sourceLost, .noSuchFile, "\(path) does not exist.", cause: reason)
        case ENOTDIR:
            return TransferError(.sourceLost, .noSuchFile, "A part of the path \(path) is no folder.", cause: reason)
        case EACCES, EPERM:
            return TransferError(.sourceLost, .notReadable, "\(path) can't be read: permission is missing.", cause: reason)
        case ELOOP:
            return TransferError(
                .sourceLost, .notReadable, "\(path) is a symbolic link that is not followed, or one without an end.", cause: reason)
        case EMFILE, ENFILE:
            return TransferError(.noSpace, .notReadable, "\(path) can't be opened: too many files are open.", cause: reason)
        default:
            return TransferError(.sourceLost, .notReadable, "\(path) can't be read.", cause: reason)
        }
    }
}
