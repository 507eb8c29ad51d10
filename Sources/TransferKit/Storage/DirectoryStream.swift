import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The identity of a file on disk, regardless of its name. Compare identities only while the files exist, because the system reuses the
/// inodes of deleted files.
struct FileIdentity: Hashable, Sendable {
    let device: UInt64
    let inode: UInt64

    init(_ status: stat) {
        device = UInt64(bitPattern: Int64(status.st_dev))
        inode = UInt64(status.st_ino)
    }

    /// The identity of the file at a path; nil if its status can't be read.
    init?(of path: FilePath) {
        var status = stat()
        guard unsafe path.withPlatformString({ unsafe stat($0, &status) }) == 0 else { return nil }
        self.init(status)
    }
}

/// An open folder that is read entry by entry. Every call blocks.
///
/// Memory-safe: the handle is private, and only `deinit` closes it.
@safe
final class DirectoryStream {
    #if canImport(Darwin)
        private typealias Handle = UnsafeMutablePointer<DIR>
    #else
        private typealias Handle = OpaquePointer
    #endif

    let identity: FileIdentity
    private let handle: Handle

    /// Opens a folder.
    ///
    /// - Parameter followsLink: Whether the path may be a symbolic link to a folder.
    convenience init(opening path: FilePath, followsLink: Bool) throws(Errno) {
        let descriptor: FileDescriptor
        do {
            descriptor = try FileDescriptor.open(
                path, .readOnly, options: followsLink ? [.directory, .closeOnExec] : [.directory, .closeOnExec, .noFollow])
        } catch {
            throw error as? Errno ?? .ioError
        }
        try self.init(descriptor)
    }

    /// Opens a folder below `root` without following any symbolic link below `root`.
    convenience init(opening path: FilePath, below root: FilePath) throws(Errno) {
        var name = path
        guard name.removePrefix(root) else { throw .invalidArgument }
        try self.init(try ConfinedFolder.openForReading(root, name, options: O_DIRECTORY))
    }

    /// - Parameter descriptor: The descriptor of the folder, which this object closes.
    private init(_ descriptor: FileDescriptor) throws(Errno) {
        var status = stat()
        guard unsafe fstat(descriptor.rawValue, &status) == 0, let handle = unsafe fdopendir(descriptor.rawValue) else {
            let code = errno
            try? descriptor.close()
            throw Errno(rawValue: code)
        }
        identity = FileIdentity(status)
        unsafe self.handle = handle
    }

    deinit {
        unsafe closedir(handle)
    }

    /// Returns the name of the next entry, in the file system's order; nil after the last entry. Skips "." and "..".
    func next() throws(Errno) -> [UInt8]? {
        while true {
            // readdir(3) distinguishes an error from the end of the folder only by errno.
            errno = 0
            guard let entry = unsafe readdir(handle) else {
                guard errno == 0 else { throw Errno(rawValue: errno) }
                return nil
            }
            // Don't read the property `d_name`: Swift would copy a tuple of 256 bytes, but some file systems have longer names.
            guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { throw .ioError }
            let start = unsafe UnsafeRawPointer(entry).advanced(by: offset)
            let length = unsafe strlen(start.assumingMemoryBound(to: CChar.self))
            let name = unsafe [UInt8](UnsafeRawBufferPointer(start: start, count: length))
            guard name != [UInt8(ascii: ".")], name != [UInt8(ascii: "."), UInt8(ascii: ".")] else { continue }
            return name
        }
    }

    /// Makes ``next()`` begin with the first entry again.
    func rewind() {
        unsafe rewinddir(handle)
    }

    func status(of name: [UInt8], followsLink: Bool) throws(Errno) -> stat {
        var status = stat()
        let terminated = name + [0]
        let result = unsafe terminated.withUnsafeBytes { buffer in
            // The buffer holds at least the NUL, so it has a base address.
            guard let start = buffer.baseAddress else { return CInt(-1) }
            return unsafe fstatat(
                dirfd(handle), start.assumingMemoryBound(to: CChar.self), &status, followsLink ? 0 : AT_SYMLINK_NOFOLLOW)
        }
        guard result == 0 else { throw Errno(rawValue: errno) }
        return status
    }
}
