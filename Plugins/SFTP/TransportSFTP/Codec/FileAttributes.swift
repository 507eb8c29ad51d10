import TransferCore

/// A file's attributes (draft-ietf-secsh-filexfer-02, section 5). In a response, nil attributes are unknown. In a request, nil
/// attributes stay unchanged.
package struct FileAttributes: Hashable, Sendable {
    private enum Flag {
        static let size: UInt32 = 0x1
        static let owner: UInt32 = 0x2
        static let permissions: UInt32 = 0x4
        static let times: UInt32 = 0x8
        static let extended: UInt32 = 0x8000_0000
    }

    /// The kind of file, from its mode (inode(7)).
    package enum Kind: Sendable {
        case regular
        case folder
        case link
        case other
    }

    package var size: UInt64?
    package var owner: UInt32?
    package var group: UInt32?
    /// The mode bits. In a response, they include the bits that encode the kind of file.
    package var permissions: UInt32?
    /// The access time in seconds since 1970.
    package var accessTime: UInt32?
    /// The modification time in seconds since 1970.
    package var modificationTime: UInt32?

    package init() {}

    /// Attributes that set only the size, in bytes.
    package static func size(_ size: Int64) -> FileAttributes {
        var attributes = FileAttributes()
        attributes.size = UInt64(max(0, size))
        return attributes
    }

    /// Attributes that set both times, in seconds since 1970, because version 3 of the protocol can't set only one of them.
    package static func times(_ seconds: UInt32) -> FileAttributes {
        var attributes = FileAttributes()
        attributes.accessTime = seconds
        attributes.modificationTime = seconds
        return attributes
    }

    /// Attributes that set only the permissions.
    package static func permissions(_ mode: UInt32) -> FileAttributes {
        var attributes = FileAttributes()
        attributes.permissions = mode
        return attributes
    }

    /// The largest plausible size of a file in bytes, 64 PiB. The limit prevents overflows in sums of sizes.
    package static let largestSize: UInt64 = 1 << 56

    /// Returns the size that a server reports, if it is plausible.
    ///
    /// - Parameters:
    ///   - name: The name of the file as shown in messages.
    ///   - server: The name of the server as shown in messages.
    /// - Returns: The size in bytes; nil if the server does not report it.
    /// - Throws: A `TransferError` of the class `protocolViolation` if the size is implausible.
    func checkedSize(of name: String, at server: String) throws(TransferError) -> Int64? {
        guard let size else { return nil }
        guard size <= Self.largestSize else {
            throw TransferError(
                .protocolViolation, .invalidResponse, "\(server) reports \(size) bytes as the size of \(name), which is implausible.")
        }
        return Int64(size)
    }

    /// The kind of file; nil if the server does not report it.
    package var kind: Kind? {
        switch permissions.map({ $0 & 0o170000 }) {
        case nil, 0?: nil
        case 0o100000?: .regular
        case 0o040000?: .folder
        case 0o120000?: .link
        default: .other
        }
    }

    init(from reader: inout PacketReader) throws(ProtocolFault) {
        let flags = try reader.uint32()
        if flags & Flag.size != 0 { size = try reader.uint64() }
        if flags & Flag.owner != 0 {
            owner = try reader.uint32()
            group = try reader.uint32()
        }
        if flags & Flag.permissions != 0 { permissions = try reader.uint32() }
        if flags & Flag.times != 0 {
            accessTime = try reader.uint32()
            modificationTime = try reader.uint32()
        }
        guard flags & Flag.extended != 0 else { return }
        let count = Int(try reader.uint32())
        // An extended attribute consists of two strings, and each string begins with a length field of four bytes.
        guard count <= reader.remaining / 8 else { throw ProtocolFault("The server sent more attributes than the packet can hold.") }
        for _ in 0..<2 * count { _ = try reader.string("an attribute", atMost: PacketLimit.packet) }
    }

    func write(to writer: inout PacketWriter) {
        var flags: UInt32 = 0
        if size != nil { flags |= Flag.size }
        if owner != nil, group != nil { flags |= Flag.owner }
        if permissions != nil { flags |= Flag.permissions }
        if accessTime != nil, modificationTime != nil { flags |= Flag.times }
        writer.append(flags)
        if let size { writer.append(size) }
        if let owner, let group {
            writer.append(owner)
            writer.append(group)
        }
        if let permissions { writer.append(permissions) }
        if let accessTime, let modificationTime {
            writer.append(accessTime)
            writer.append(modificationTime)
        }
    }
}
