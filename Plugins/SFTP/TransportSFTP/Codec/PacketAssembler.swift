/// Splits the bytes from a server into SFTP packets. A length field of four bytes precedes each packet (draft-ietf-secsh-filexfer-02,
/// section 3).
package struct PacketAssembler: Sendable {
    private var bytes: [UInt8] = []
    /// The position in `bytes` of the first packet that ``next()`` has not returned yet.
    private var start = 0

    package init() {}

    package mutating func append(_ arrived: [UInt8]) {
        if start > 0 {
            bytes.removeFirst(start)
            start = 0
        }
        if bytes.isEmpty { bytes = arrived } else { bytes += arrived }
    }

    /// Returns the next packet without its length field; nil if the packet is not complete yet.
    ///
    /// - Throws: A ``ProtocolFault`` if the length is invalid.
    package mutating func next() throws(ProtocolFault) -> ArraySlice<UInt8>? {
        guard bytes.count - start >= 4 else { return nil }
        let length = Int(bytes[start..<start + 4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
        guard length > 0, length <= PacketLimit.packet else {
            throw ProtocolFault("The server sent a packet of \(length) bytes; 1 to \(PacketLimit.packet) are allowed.")
        }
        guard bytes.count - start - 4 >= length else { return nil }
        defer { start += 4 + length }
        return bytes[start + 4..<start + 4 + length]
    }
}
