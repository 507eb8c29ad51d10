/// What OpenSSH adds to version 3 (its file PROTOCOL, section 4), and other servers took over.
package enum ProtocolExtension: String, Hashable, Sendable, CaseIterable {
    case posixRename = "posix-rename@openssh.com"
    case hardlink = "hardlink@openssh.com"
    case fsync = "fsync@openssh.com"
    case statvfs = "statvfs@openssh.com"
    case fstatvfs = "fstatvfs@openssh.com"
    case limits = "limits@openssh.com"
}

/// What a server said of itself when the connection began.
package struct ServerFeatures: Hashable, Sendable {
    /// What one request reads or writes where the server does not say (draft-ietf-secsh-filexfer-02, section 3: servers take packets of 34,000
    /// bytes). Also enough where it does: more of these on their way are as fast, and each fits into one packet of SSH.
    package static let chunkSize = 32_640
    /// The smallest limit of a server that counts: with less in each request, a file would take more work than it is worth.
    package static let smallestChunkSize: UInt64 = 4_096

    package var version: UInt32 = 3
    /// All that the server named, also what nobody here knows.
    package var extensions: [String] = []
    /// How many bytes one request may write.
    package var writeSize = chunkSize
    /// How many bytes one request may read.
    package var readSize = chunkSize
    /// What the server says of its limits; nil if it says nothing.
    package private(set) var limits: ServerLimits?

    package init() {}

    package func offers(_ feature: ProtocolExtension) -> Bool {
        extensions.contains(feature.rawValue)
    }

    /// Takes in the answer to ``Request/limits``.
    mutating func note(_ limits: ServerLimits) {
        self.limits = limits
        readSize = Self.size(readSize, within: limits.readLength)
        writeSize = Self.size(writeSize, within: limits.writeLength)
    }

    private static func size(_ size: Int, within limit: UInt64) -> Int {
        limit == 0 ? size : Int(min(UInt64(size), max(limit, smallestChunkSize)))
    }
}

/// The answer to ``Request/limits``; 0 where the server has no limit, or does not say (OpenSSH, PROTOCOL, section 4.8).
package struct ServerLimits: Hashable, Sendable {
    package var packetLength: UInt64
    package var readLength: UInt64
    package var writeLength: UInt64
    package var openHandles: UInt64

    package init(_ reply: [UInt8]) throws(ProtocolFault) {
        var reader = PacketReader(reply[...])
        packetLength = try reader.uint64()
        readLength = try reader.uint64()
        writeLength = try reader.uint64()
        openHandles = try reader.uint64()
    }
}

/// The answer to ``Request/statvfs(_:)`` (OpenSSH, PROTOCOL, section 4.4), as far as it is of use.
package struct FileSystemSpace: Hashable, Sendable {
    /// How many bytes may yet be written by this account.
    package var available: UInt64

    package init(_ reply: [UInt8]) throws(ProtocolFault) {
        var reader = PacketReader(reply[...])
        _ = try reader.uint64()
        let fragment = try reader.uint64()
        _ = try reader.uint64()
        _ = try reader.uint64()
        let product = try reader.uint64().multipliedReportingOverflow(by: fragment)
        available = product.overflow ? .max : product.partialValue
    }
}
