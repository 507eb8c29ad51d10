/// Reads the fields of a packet. Throws a ``ProtocolFault`` instead of reading beyond the end of the packet.
struct PacketReader {
    private var rest: ArraySlice<UInt8>

    init(_ packet: ArraySlice<UInt8>) {
        rest = packet
    }

    var remaining: Int { rest.count }

    mutating func byte() throws(ProtocolFault) -> UInt8 {
        guard let byte = rest.popFirst() else { throw Self.tooShort }
        return byte
    }

    mutating func uint32() throws(ProtocolFault) -> UInt32 {
        guard rest.count >= 4 else { throw Self.tooShort }
        defer { rest = rest.dropFirst(4) }
        return rest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func uint64() throws(ProtocolFault) -> UInt64 {
        let high = try uint32()
        return UInt64(high) << 32 | UInt64(try uint32())
    }

    /// Reads a string of bytes.
    ///
    /// - Parameters:
    ///   - what: The name of the field as shown in messages.
    ///   - limit: The maximum number of bytes.
    mutating func string(_ what: String, atMost limit: Int) throws(ProtocolFault) -> [UInt8] {
        let count = Int(try uint32())
        guard count <= rest.count else { throw ProtocolFault("The server sent \(what) that is longer than its packet.") }
        guard count <= limit else { throw ProtocolFault("The server sent \(what) of \(count) bytes; the limit is \(limit).") }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    /// Reads human-readable text. Truncates it after `limit` bytes, and replaces each line break and NUL character with a space.
    mutating func text(atMost limit: Int) throws(ProtocolFault) -> String {
        let bytes = try string("a text", atMost: PacketLimit.packet)
        return String(String(decoding: bytes.prefix(limit), as: UTF8.self).map { $0.isNewline || $0 == "\0" ? " " : $0 })
    }

    mutating func takeRest() -> [UInt8] {
        defer { rest = [] }
        return Array(rest)
    }

    private static let tooShort = ProtocolFault("The server sent a packet that ends too early.")
}
