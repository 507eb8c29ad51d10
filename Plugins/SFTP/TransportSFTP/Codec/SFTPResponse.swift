/// The status of a request (draft-ietf-secsh-filexfer-02, section 7). Codes above 8 are from later drafts, but some servers send them with version 3.
package struct Status: Hashable, Sendable {
    package struct Code: RawRepresentable, Hashable, Sendable {
        package let rawValue: UInt32

        package init(rawValue: UInt32) {
            self.rawValue = rawValue
        }

        package static let ok = Code(rawValue: 0)
        package static let endOfFile = Code(rawValue: 1)
        package static let noSuchFile = Code(rawValue: 2)
        package static let permissionDenied = Code(rawValue: 3)
        package static let failure = Code(rawValue: 4)
        package static let badMessage = Code(rawValue: 5)
        package static let noConnection = Code(rawValue: 6)
        package static let connectionLost = Code(rawValue: 7)
        package static let unsupported = Code(rawValue: 8)
        package static let invalidHandle = Code(rawValue: 9)
        package static let noSuchPath = Code(rawValue: 10)
        package static let fileExists = Code(rawValue: 11)
        package static let writeProtected = Code(rawValue: 12)
        package static let noMedia = Code(rawValue: 13)
        package static let noSpace = Code(rawValue: 14)
        package static let quotaExceeded = Code(rawValue: 15)
        package static let lockConflict = Code(rawValue: 17)
        package static let notAFolder = Code(rawValue: 19)
        package static let invalidName = Code(rawValue: 20)
        package static let linkLoop = Code(rawValue: 21)
    }

    package var code: Code
    /// The server's message, or an empty string.
    package var message: String

    package init(_ code: Code, _ message: String = "") {
        self.code = code
        self.message = message
    }
}

/// An entry in the listing of a folder.
package struct ListedFile: Hashable, Sendable {
    /// The name as the server sent it. It is not checked: it may be `..` or contain a slash.
    package var name: [UInt8]
    package var attributes: FileAttributes
}

/// The content of a response packet.
package enum SFTPResponse: Hashable, Sendable {
    case status(Status)
    case handle(Handle)
    case data([UInt8])
    case names([ListedFile])
    case attributes(FileAttributes)
    case extended([UInt8])
}

/// A packet from a server.
package enum ServerPacket: Hashable, Sendable {
    case version(SFTPFeatures)
    case response(id: UInt32, SFTPResponse)

    /// Decodes a packet.
    ///
    /// - Parameter packet: The packet without its length field.
    /// - Throws: A ``ProtocolFault`` if the packet is malformed, or is not of a type that a server sends.
    package init(_ packet: ArraySlice<UInt8>) throws(ProtocolFault) {
        var reader = PacketReader(packet)
        let type = try reader.byte()
        if type == PacketType.version.rawValue {
            self = .version(try Self.version(&reader))
            return
        }
        let id = try reader.uint32()
        self = .response(id: id, try Self.response(PacketType(rawValue: type), &reader))
    }

    private static func version(_ reader: inout PacketReader) throws(ProtocolFault) -> SFTPFeatures {
        var features = SFTPFeatures()
        features.version = try reader.uint32()
        while reader.remaining > 0 {
            let name = try reader.string("an extension's name", atMost: PacketLimit.name)
            _ = try reader.string("an extension's data", atMost: PacketLimit.packet)
            features.extensions.append(String(decoding: name, as: UTF8.self))
        }
        return features
    }

    private static func response(_ type: PacketType?, _ reader: inout PacketReader) throws(ProtocolFault) -> SFTPResponse {
        switch type {
        case .status:
            let code = Status.Code(rawValue: try reader.uint32())
            // Servers that follow the first drafts send no message.
            return .status(Status(code, reader.remaining > 0 ? try reader.text(atMost: 300) : ""))
        case .handle: return .handle(Handle(try reader.string("a handle", atMost: PacketLimit.handle)))
        case .data: return .data(try reader.string("content", atMost: PacketLimit.packet))
        case .attributes: return .attributes(try FileAttributes(from: &reader))
        case .name: return .names(try names(&reader))
        case .extendedReply: return .extended(reader.takeRest())
        default: throw ProtocolFault("The server sent a packet that is not a response.")
        }
    }

    private static func names(_ reader: inout PacketReader) throws(ProtocolFault) -> [ListedFile] {
        let count = Int(try reader.uint32())
        // Each entry has at least three fields of four bytes: two lengths and its flags.
        guard count <= PacketLimit.names, count <= reader.remaining / 12 else {
            throw ProtocolFault("The server lists \(count) names in one packet, more than the packet can hold.")
        }
        var names: [ListedFile] = []
        names.reserveCapacity(count)
        for _ in 0..<count {
            let name = try reader.string("a name", atMost: PacketLimit.name)
            // Ignores the entry's line in `ls -l` format.
            _ = try reader.string("a line of a listing", atMost: PacketLimit.packet)
            names.append(ListedFile(name: name, attributes: try FileAttributes(from: &reader)))
        }
        return names
    }
}
