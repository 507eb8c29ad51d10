package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Opens files below a root folder without leaving the folder through a symbolic link.
///
/// Opens each component in its parent folder without following links (openat(2), O_NOFOLLOW), not even links that another process creates
/// during the call. There are two exceptions: the path of the root folder, which the app chooses, can contain links, and
/// ``openForReading(_:_:followsLast:options:)`` follows a link as the last component if the caller permits it.
package enum ConfinedFolder {
    /// Opens the parent folder of an existing or future file. Blocks.
    ///
    /// - Parameters:
    ///   - name: The file's name below the root: relative, without `..`.
    ///   - creates: Whether to create missing folders below the root. Created folders are durable when this function returns.
    ///   - sync: Syncs a folder. Like fsync(2), returns 0, or sets `errno` and returns -1. Tests replace it.
    /// - Returns: The folder, and the file's own name in it. The caller closes the descriptor.
    /// - Throws: A ``TransferError`` that names the path.
    package static func open(
        _ root: FilePath, parentOf name: FilePath, creates: Bool, sync: (FileDescriptor) -> CInt = { fsync($0.rawValue) }
    ) throws(TransferError) -> (folder: FileDescriptor, name: FilePath) {
        guard !name.isAbsolute, name.components.allSatisfy({ $0.kind == .regular }), let last = name.lastComponent else {
            throw .unsafeName("The name \(name) would leave its folder. Use a relative path below \(root).")
        }
        var path = root
        var folder = try openFolder(nil, root, at: path)
        for component in name.components.dropLast() {
            path.append(component)
            let parent = folder
            defer { try? parent.close() }
            if creates { try createFolder(component, in: parent, at: path, sync) }
            folder = try openFolder(parent, FilePath(root: nil, components: component), at: path)
        }
        return (folder, FilePath(root: nil, components: last))
    }

    /// Opens a file or folder below a root folder for reading. An empty name opens the root folder itself. Blocks.
    ///
    /// - Parameters:
    ///   - name: The path below the root: relative, without `..`.
    ///   - followsLast: Whether the last component may be a symbolic link.
    ///   - options: Additional flags of open(2).
    /// - Returns: A descriptor that the caller closes.
    package static func openForReading(
        _ root: FilePath, _ name: FilePath, followsLast: Bool = false, options: CInt = 0
    ) throws(Errno) -> FileDescriptor {
        guard !name.isAbsolute, name.components.allSatisfy({ $0.kind == .regular }) else { throw .invalidArgument }
        let common = O_RDONLY | O_CLOEXEC | O_NONBLOCK
        if name.components.count == 1 {
            // The path of the root can contain links, so one system call suffices.
            let flags = common | options | (followsLast ? 0 : O_NOFOLLOW)
            let descriptor = DescriptorLimit.closeIfReserved(
                unsafe root.pushing(name).withPlatformString { unsafe openat(AT_FDCWD, $0, flags) })
            guard descriptor >= 0 else { throw Errno(rawValue: errno) }
            return FileDescriptor(rawValue: descriptor)
        }
        var current: FileDescriptor?
        var rest = name.components[...]
        while true {
            let parent = current
            defer { try? parent?.close() }
            let next = parent == nil ? nil : rest.popFirst()
            let isLast = rest.isEmpty
            let flags =
                common | (isLast ? options : folderFlags) | (next == nil || isLast && followsLast ? 0 : O_NOFOLLOW)
            let path = next.map { FilePath(root: nil, components: $0) } ?? root
            let descriptor = DescriptorLimit.closeIfReserved(
                unsafe path.withPlatformString { unsafe openat(parent?.rawValue ?? AT_FDCWD, $0, flags) })
            guard descriptor >= 0 else { throw Errno(rawValue: errno) }
            current = FileDescriptor(rawValue: descriptor)
            if isLast { return FileDescriptor(rawValue: descriptor) }
        }
    }

    /// The flags of open(2) for a folder that is only the parent of another file. With these flags, the call needs no read permission, and usually
    /// sends no request to the server of a network share.
    #if canImport(Darwin)
        private static let folderFlags = O_DIRECTORY | O_SEARCH
    #else
        // O_PATH, a macro that Swift does not import.
        private static let folderFlags: CInt = O_DIRECTORY | 0o10000000
    #endif

    private static func openFolder(_ parent: FileDescriptor?, _ name: FilePath, at path: FilePath) throws(TransferError) -> FileDescriptor {
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (parent == nil ? 0 : O_NOFOLLOW)
        let descriptor = DescriptorLimit.closeIfReserved(
            unsafe name.withPlatformString { unsafe openat(parent?.rawValue ?? AT_FDCWD, $0, flags) })
        guard descriptor >= 0 else { throw .destinationUnavailable(path, errno: errno) }
        return FileDescriptor(rawValue: descriptor)
    }

    private static func createFolder(
        _ name: FilePath.Component, in parent: FileDescriptor, at path: FilePath, _ sync: (FileDescriptor) -> CInt
    ) throws(TransferError) {
        let result = unsafe name.withPlatformString { unsafe mkdirat(parent.rawValue, $0, 0o777) }
        guard result == 0 else {
            guard errno == EEXIST else { throw .destinationUnavailable(path, errno: errno) }
            // Another process may have created the folder and exited before it synced the parent folder, so sync the parent here, too.
            // Ignore errors, because some file systems can't sync folders.
            _ = sync(parent)
            return
        }
        guard sync(parent) == 0 else { throw .destinationUnavailable(path, errno: errno) }
    }
}

extension TransferError {
    /// The error for a local file or folder that can't be created or written.
    package static func destinationUnavailable(_ path: FilePath, errno code: CInt) -> TransferError {
        let reason = Errno(rawValue: code).description
        switch code {
        case ENOSPC, EDQUOT:
            return TransferError(.noSpace, .diskFull, "Cannot write \(path): the disk is full. Free some space.", cause: reason)
        case EMFILE, ENFILE:
            return TransferError(
                .noSpace, .notWritable, "Cannot open \(path): too many open files. Raise the limit (ulimit -n).", cause: reason)
        case ELOOP, ENOTDIR:
            return TransferError(
                .permanent, .unsafeName, "\(path) is a symbolic link or not a folder. Downloads don't follow links.", cause: reason)
        case ENOENT:
            return TransferError(.permanent, .noSuchFile, "\(path) does not exist. Create the folder first.", cause: reason)
        case EACCES, EPERM, EROFS:
            return TransferError(.permanent, .notWritable, "Cannot write \(path): permission denied. Check its permissions.", cause: reason)
        case EISDIR:
            return TransferError(.permanent, .notWritable, "\(path) is a folder. Choose another name for the file.", cause: reason)
        case ENAMETOOLONG:
            return TransferError(.permanent, .unsafeName, "The name \(path) is too long for its file system.", cause: reason)
        case EFBIG:
            return TransferError(.permanent, .tooLarge, "\(path) would exceed the file size limit of its file system.", cause: reason)
        case EIO:
            return TransferError(.transient, .notWritable, "Cannot write \(path): the disk failed.", cause: reason)
        default:
            return TransferError(.permanent, .notWritable, "Cannot write \(path).", cause: reason)
        }
    }

    /// The error for a download that must not replace an existing file.
    package static func fileExists(_ path: FilePath) -> TransferError {
        TransferError(
            .permanent, .fileExists, "\(path) already exists. Move it, choose another name, or change the overwrite policy.")
    }
}
