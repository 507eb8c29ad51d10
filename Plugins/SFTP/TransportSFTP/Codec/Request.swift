/// The handle of an open file or folder, as the server sent it.
package struct Handle: Hashable, Sendable {
    package let bytes: [UInt8]

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }
}

/// The flags for opening a file (draft-ietf-secsh-filexfer-02, section 6.3).
package struct OpenMode: OptionSet, Hashable, Sendable {
    package let rawValue: UInt32

    package init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    package static let read = OpenMode(rawValue: 0x1)
    package static let write = OpenMode(rawValue: 0x2)
    package static let create = OpenMode(rawValue: 0x8)
    package static let truncate = OpenMode(rawValue: 0x10)
    package static let exclusive = OpenMode(rawValue: 0x20)
}

/// A request to a server (draft-ietf-secsh-filexfer-02, section 6; the extensions are from OpenSSH's file PROTOCOL, section 4).
package enum Request: Hashable, Sendable {
    case open([UInt8], OpenMode, FileAttributes = FileAttributes())
    case close(Handle)
    case read(Handle, offset: UInt64, count: UInt32)
    case write(Handle, offset: UInt64, [UInt8])
    case lstat([UInt8])
    case stat([UInt8])
    case fstat(Handle)
    case setstat([UInt8], FileAttributes)
    case fsetstat(Handle, FileAttributes)
    case opendir([UInt8])
    case readdir(Handle)
    case remove([UInt8])
    case mkdir([UInt8], FileAttributes = FileAttributes())
    case rmdir([UInt8])
    case realpath([UInt8])
    case rename([UInt8], to: [UInt8])
    case posixRename([UInt8], to: [UInt8])
    case hardlink([UInt8], to: [UInt8])
    case fsync(Handle)
    case statvfs([UInt8])
    case fstatvfs(Handle)
    case limits
    /// Copies a range of the first file to the same position of the second file.
    case copyData(Handle, Range<UInt64>, to: Handle)

    /// Whether the request names a path, rather than the handle of an open file or folder.
    var namesPath: Bool {
        switch self {
        case .close, .read, .write, .fstat, .fsetstat, .readdir, .fsync, .fstatvfs, .limits, .copyData: false
        case .open, .lstat, .stat, .setstat, .opendir, .remove, .mkdir, .rmdir, .realpath, .rename, .posixRename, .hardlink, .statvfs: true
        }
    }

    /// Whether the request transfers content, or the names in a folder. Such requests are too numerous to log.
    var isForContent: Bool {
        switch self {
        case .read, .write, .readdir: true
        default: false
        }
    }

    /// The name of the request, for the log.
    var name: String {
        switch self {
        case .posixRename: "posix-rename"
        case .hardlink: "hardlink"
        case .fsync: "fsync"
        case .statvfs, .fstatvfs: "statvfs"
        case .limits: "limits"
        case .copyData: "copy-data"
        default: "\(type)"
        }
    }

    /// The first packet that the client sends. It requests version 3 of the protocol.
    package static let initialize: [UInt8] = {
        var writer = PacketWriter(.initialize)
        writer.append(UInt32(3))
        return writer.finish()
    }()

    /// Returns the packet for the request, including its length field.
    ///
    /// - Parameter id: The request ID, which the server repeats in its response.
    package func encoded(id: UInt32) -> [UInt8] {
        var writer = PacketWriter(type, capacity: capacity)
        writer.append(id)
        switch self {
        case .open(let path, let mode, let attributes):
            writer.append(path)
            writer.append(mode.rawValue)
            attributes.write(to: &writer)
        case .close(let handle), .fstat(let handle), .readdir(let handle):
            writer.append(handle.bytes)
        case .read(let handle, let offset, let count):
            writer.append(handle.bytes)
            writer.append(offset)
            writer.append(count)
        case .write(let handle, let offset, let content):
            writer.append(handle.bytes)
            writer.append(offset)
            writer.append(content)
        case .lstat(let path), .stat(let path), .opendir(let path), .remove(let path), .rmdir(let path), .realpath(let path):
            writer.append(path)
        case .setstat(let path, let attributes), .mkdir(let path, let attributes):
            writer.append(path)
            attributes.write(to: &writer)
        case .fsetstat(let handle, let attributes):
            writer.append(handle.bytes)
            attributes.write(to: &writer)
        case .rename(let old, let new):
            writer.append(old)
            writer.append(new)
        case .posixRename(let old, let new): append(.posixRename, [old, new], to: &writer)
        case .hardlink(let old, let new): append(.hardlink, [old, new], to: &writer)
        case .fsync(let handle): append(.fsync, [handle.bytes], to: &writer)
        case .statvfs(let path): append(.statvfs, [path], to: &writer)
        case .fstatvfs(let handle): append(.fstatvfs, [handle.bytes], to: &writer)
        case .limits: append(.limits, [], to: &writer)
        case .copyData(let source, let range, let target):
            append(.copyData, [source.bytes], to: &writer)
            writer.append(range.lowerBound)
            writer.append(range.upperBound - range.lowerBound)
            writer.append(target.bytes)
            writer.append(range.lowerBound)
        }
        return writer.finish()
    }

    private func append(_ feature: ProtocolExtension, _ strings: [[UInt8]], to writer: inout PacketWriter) {
        writer.append(feature.rawValue)
        for string in strings { writer.append(string) }
    }

    private var capacity: Int {
        if case .write(let handle, _, let content) = self { handle.bytes.count + content.count + 64 } else { 256 }
    }

    private var type: PacketType {
        switch self {
        case .open: .open
        case .close: .close
        case .read: .read
        case .write: .write
        case .lstat: .lstat
        case .stat: .stat
        case .fstat: .fstat
        case .setstat: .setstat
        case .fsetstat: .fsetstat
        case .opendir: .opendir
        case .readdir: .readdir
        case .remove: .remove
        case .mkdir: .mkdir
        case .rmdir: .rmdir
        case .realpath: .realpath
        case .rename: .rename
        case .posixRename, .hardlink, .fsync, .statvfs, .fstatvfs, .limits, .copyData: .extended
        }
    }
}
