import Foundation
public import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The properties of a local file that reveal a change without reading the content.
///
/// The queue stores the identity with each checkpoint, and compares it before each attempt, so that an upload does not mix two versions of
/// a file.
public struct SourceIdentity: Hashable, Sendable, Codable {
    /// The size in bytes.
    public var size: Int64
    /// The time of the last modification, in nanoseconds since 1970.
    public var modificationTime: Int64
    /// The inode number. Only comparable within one boot.
    public var inode: UInt64
    /// The device number. Only comparable within one boot.
    public var device: UInt64
    /// The ID of the boot to which the inode and device numbers belong.
    public var bootID: String

    /// A digest of the start and the end of the confirmed bytes. The queue computes the digest and stores it with a checkpoint. Nil if the
    /// checkpoint covers at most 1 MiB, if the source is a stream, or if the queue could not read the file. ``difference(from:)`` ignores
    /// the digest.
    package var prefixDigest: String?

    /// Creates an identity.
    public init(size: Int64, modificationTime: Int64, inode: UInt64, device: UInt64, bootID: String) {
        self.size = size
        self.modificationTime = modificationTime
        self.inode = inode
        self.device = device
        self.bootID = bootID
    }

    /// The difference between two versions of a file.
    public enum Difference: Hashable, Sendable {
        /// The content certainly or very probably differs. The text names the change.
        case content(String)
        /// The size and the modification time are the same, but the inode or device differs. Only a comparison of the content can show
        /// whether the file has changed.
        case fileReplaced
    }

    /// Compares this identity with an earlier one. As with `rsync`, size and modification time decide.
    ///
    /// The inode and device numbers are compared only within one boot, because both may change at a reboot or a remount.
    ///
    /// - Returns: The difference; nil if no compared property differs.
    public func difference(from earlier: SourceIdentity) -> Difference? {
        if size != earlier.size {
            return .content("its size was \(earlier.size) bytes and is now \(size)")
        }
        if modificationTime != earlier.modificationTime {
            return .content("it was modified")
        }
        if bootID == earlier.bootID, inode != earlier.inode || device != earlier.device {
            return .fileReplaced
        }
        return nil
    }

    /// Reads the identity of the regular file at a path, following symbolic links.
    ///
    /// Blocks on the file system. Don't call this initializer on the cooperative thread pool if the file may be on a network.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/sourceLost`` if there is no regular file at the path, or if the file can't
    ///   be inspected.
    public init(ofFileAt path: FilePath) throws(TransferError) {
        var status = stat()
        let result = unsafe path.withPlatformString { unsafe stat($0, &status) }
        guard result == 0 else { throw .sourceUnavailable(path, errno: errno) }
        try self.init(status, path: path)
    }

    /// Reads the identity of an open file.
    ///
    /// - Parameters:
    ///   - descriptor: The open file.
    ///   - path: The path, for errors only.
    /// - Throws: The same errors as ``init(ofFileAt:)``.
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
        // Linux: proc(5). Other systems have no equally cheap ID. With an empty ID, inode and device are always compared, which is the safe choice.
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
            return TransferError(
                .sourceLost, .noSuchFile,
                "A component of the path \(path) is not a folder, or is a symbolic link that the session does not follow.",
                cause: reason)
        case EACCES, EPERM:
            return TransferError(.sourceLost, .notReadable, "Cannot read \(path): permission denied. Check its permissions.", cause: reason)
        case ELOOP:
            return TransferError(
                .sourceLost, .notReadable, "\(path) is a symbolic link that the session does not follow, or a loop of links.", cause: reason
            )
        case EMFILE, ENFILE:
            return TransferError(
                .noSpace, .notReadable, "Cannot open \(path): too many open files. Raise the limit (ulimit -n).", cause: reason)
        default:
            return TransferError(.sourceLost, .notReadable, "Cannot read \(path).", cause: reason)
        }
    }
}
