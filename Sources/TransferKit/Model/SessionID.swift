public import Foundation

/// The permanent identity of a session. It survives restarts of the process and moves of the session, and is not reused after a removal.
public struct SessionID: Hashable, Sendable, Codable, LosslessStringConvertible {
    /// The UUID: random (RFC 9562, version 4), so its first few characters usually distinguish it from other IDs.
    public let uuid: UUID

    /// Creates a new, random ID.
    public init() {
        uuid = UUID()
    }

    /// Creates an ID from an existing UUID.
    public init(uuid: UUID) {
        self.uuid = uuid
    }

    /// Parses the text of a UUID, in upper or lower case; nil if the text is not a UUID.
    public init?(_ description: String) {
        guard let uuid = UUID(uuidString: description) else { return nil }
        self.uuid = uuid
    }

    /// Decodes an ID from a single string.
    public init(from decoder: any Decoder) throws {
        uuid = try decoder.singleValueContainer().decode(UUID.self)
    }

    /// Encodes the ID as a single string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(uuid)
    }

    /// The UUID in lower case.
    public var description: String {
        // Foundation's `uuidString` is in upper case and takes ten times as long, and a list can have a hundred thousand IDs.
        unsafe withUnsafeBytes(of: uuid.uuid) { bytes in
            unsafe String(unsafeUninitializedCapacity: 36) { text in
                var end = 0
                for index in bytes.indices {
                    let byte = unsafe bytes[index]
                    if index == 4 || index == 6 || index == 8 || index == 10 {
                        unsafe text[end] = UInt8(ascii: "-")
                        end += 1
                    }
                    unsafe text[end] = Self.digit(byte >> 4)
                    unsafe text[end + 1] = Self.digit(byte & 15)
                    end += 2
                }
                return end
            }
        }
    }

    private static func digit(_ value: UInt8) -> UInt8 { value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") - 10 + value }
}
