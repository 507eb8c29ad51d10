/// Builds a packet (draft-ietf-secsh-filexfer-02, section 3) from the data types of RFC 4251, section 5.
struct PacketWriter {
    private(set) var bytes: [UInt8]

    /// - Parameter capacity: The approximate number of bytes after the packet's type.
    init(_ type: PacketType, capacity: Int = 64) {
        bytes = []
        bytes.reserveCapacity(capacity + 9)
        append(UInt32(0))
        bytes.append(type.rawValue)
    }

    mutating func append(_ value: UInt32) {
        for shift in stride(from: 24, through: 0, by: -8) { bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(shift))) }
    }

    mutating func append(_ value: UInt64) {
        append(UInt32(truncatingIfNeeded: value >> 32))
        append(UInt32(truncatingIfNeeded: value))
    }

    mutating func append(_ string: some Collection<UInt8>) {
        append(UInt32(string.count))
        bytes.append(contentsOf: string)
    }

    mutating func append(_ text: String) {
        append(Array(text.utf8))
    }

    consuming func finish() -> [UInt8] {
        let length = UInt32(bytes.count - 4)
        for index in 0..<4 { bytes[index] = UInt8(truncatingIfNeeded: length >> UInt32(24 - 8 * index)) }
        return bytes
    }
}
