import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Checks that only this process's user and root can change a storage folder.
///
/// A storage folder contains the URLs of uploads, and settings that run programs, such as `proxyCommand`. Another user who can write to the
/// folder could therefore act as this user.
enum FolderTrust {
    /// Checks the folder, its parent folders, and the symbolic links in its path. The check of the parents stops at the first folder that
    /// has the sticky bit or belongs to this user. Blocks.
    ///
    /// - Throws: ``QueueError`` with the code `storageUnavailable`. The message names the folder and a remedy.
    static func check(_ folder: FilePath) throws(QueueError) {
        let given = folder.isAbsolute ? folder : (resolved(".") ?? "/").pushing(folder)
        guard let actual = resolved(given), let status = status(of: actual, followsLink: false) else {
            throw refusal(folder, "\(given) can't be inspected (\(Errno(rawValue: errno)))", "Choose another folder")
        }
        guard status.st_uid == geteuid() else {
            throw refusal(
                folder, "\(actual) belongs to another user (user ID \(status.st_uid))",
                "Run this program as that user, or choose another folder")
        }
        try check(status, actual, of: folder)
        try checkParents(of: actual, of: folder)
        guard actual != given else { return }
        var path = given
        while !path.components.isEmpty {
            if let status = Self.status(of: path, followsLink: false), status.st_mode & S_IFMT == S_IFLNK {
                guard isOwn(status) || status.st_uid == 0 else {
                    throw refusal(
                        folder, "\(path) is a link owned by another user (user ID \(status.st_uid))", "Use the path of the folder itself")
                }
                try checkParents(of: path, of: folder)
            }
            path.removeLastComponent()
        }
    }

    private static func checkParents(of path: FilePath, of folder: FilePath) throws(QueueError) {
        var parent = path
        while !parent.components.isEmpty {
            parent.removeLastComponent()
            guard let status = status(of: parent, followsLink: true) else { continue }
            guard isOwn(status) || status.st_uid == 0 else {
                throw refusal(
                    folder, "its parent \(parent) belongs to another user (user ID \(status.st_uid))", "Choose a folder elsewhere")
            }
            // In a folder with the sticky bit, only the owners of an entry and of the folder can replace the entry (inode(7)).
            guard status.st_mode & S_ISVTX == 0 else { return }
            try check(status, parent, of: folder)
            guard !isOwn(status) else { return }
        }
    }

    private static func check(_ status: stat, _ path: FilePath, of folder: FilePath) throws(QueueError) {
        // A group whose ID equals the user's ID is private to that user, by the convention of user private groups.
        let isWritableByGroup = status.st_mode & S_IWGRP != 0 && status.st_gid != status.st_uid
        guard isWritableByGroup || status.st_mode & S_IWOTH != 0 else { return }
        let mode = String(status.st_mode & 0o7777, radix: 8)
        throw refusal(
            folder, "other users can write to \(path) (mode \(mode))",
            "Run chmod go-w \(path.string.shellWord), or choose another folder")
    }

    private static func isOwn(_ status: stat) -> Bool { status.st_uid == geteuid() }

    private static func refusal(_ folder: FilePath, _ reason: String, _ advice: String) -> QueueError {
        QueueError(.storageUnavailable, "The storage folder \(folder) is not safe: \(reason). \(advice).")
    }

    private static func status(of path: FilePath, followsLink: Bool) -> stat? {
        var status = stat()
        let result = unsafe path.withPlatformString { unsafe followsLink ? stat($0, &status) : lstat($0, &status) }
        return result == 0 ? status : nil
    }

    private static func resolved(_ path: FilePath) -> FilePath? {
        guard let resolved = unsafe path.withPlatformString({ unsafe realpath($0, nil) }) else { return nil }
        defer { unsafe free(resolved) }
        return unsafe FilePath(platformString: resolved)
    }
}
