/// OpenSSH's extensions to version 3 of the protocol (OpenSSH, PROTOCOL, section 4). Other servers support them as well.
package enum ProtocolExtension: String, Hashable, Sendable, CaseIterable {
    case posixRename = "posix-rename@openssh.com"
    case hardlink = "hardlink@openssh.com"
    case fsync = "fsync@openssh.com"
    case statvfs = "statvfs@openssh.com"
    case fstatvfs = "fstatvfs@openssh.com"
    case limits = "limits@openssh.com"
    case copyData = "copy-data"
}

/// The features that a server reports at the start of an SFTP session.
package struct SFTPFeatures: Hashable, Sendable {
    /// The maximum number of bytes that one request reads or writes. The server can set a lower limit. A request of this size fits into one
    /// SSH packet, and all servers must accept packets of 34,000 bytes (draft-ietf-secsh-filexfer-02, section 3). Larger requests would not
    /// be faster, because the client keeps many requests in flight.
    package static let chunkSize = 32_640
    /// The minimum size of a full request in bytes. If a server sets a lower limit, the client ignores that limit and uses this size,
    /// because smaller requests would be too slow.
    package static let smallestChunkSize: UInt64 = 4_096

    package var version: UInt32 = 3
    /// All extensions that the server listed, including unknown ones.
    package var extensions: [String] = []
    /// The maximum number of bytes that one request can write.
    package var writeSize = chunkSize
    /// The maximum number of bytes that one request can read.
    package var readSize = chunkSize
    /// The server's limits; nil if it does not report any.
    package private(set) var limits: ServerLimits?

    package init() {}

    package func offers(_ feature: ProtocolExtension) -> Bool {
        extensions.contains(feature.rawValue)
    }

    mutating func apply(_ limits: ServerLimits) {
        self.limits = limits
        readSize = Self.size(readSize, within: limits.readLength)
        writeSize = Self.size(writeSize, within: limits.writeLength)
    }

    private static func size(_ size: Int, within limit: UInt64) -> Int {
        limit == 0 ? size : Int(min(UInt64(size), max(limit, smallestChunkSize)))
    }
}

/// The limits that a server reports in its response to ``Request/limits``. The lengths are in bytes. A value of 0 means unlimited or
/// unreported (OpenSSH, PROTOCOL, section 4.8).
package struct ServerLimits: Hashable, Sendable {
    package var packetLength: UInt64
    package var readLength: UInt64
    package var writeLength: UInt64
    package var openHandles: UInt64

    package init(_ response: [UInt8]) throws(ProtocolFault) {
        var reader = PacketReader(response[...])
        packetLength = try reader.uint64()
        readLength = try reader.uint64()
        writeLength = try reader.uint64()
        openHandles = try reader.uint64()
    }
}

/// The free space of a file system, from the response to ``Request/statvfs(_:)`` (OpenSSH, PROTOCOL, section 4.4).
package struct FileSystemSpace: Hashable, Sendable {
    /// The number of free bytes for users other than root. A quota may allow fewer bytes.
    package var available: UInt64

    package init(_ response: [UInt8]) throws(ProtocolFault) {
        var reader = PacketReader(response[...])
        _ = try reader.uint64()
        let fragment = try reader.uint64()
        _ = try reader.uint64()
        _ = try reader.uint64()
        let product = try reader.uint64().multipliedReportingOverflow(by: fragment)
        available = product.overflow ? .max : product.partialValue
    }
}
