import Crypto
import Foundation

/// A public key of a server or a user in its wire format (RFC 4253, section 6.6).
package struct HostKey: Hashable, Sendable {
    package let bytes: [UInt8]
    /// The type of the key, for example `ssh-ed25519`.
    package let type: String

    /// Creates a key from its wire format; nil if the bytes do not begin with a type. Does not check the rest of the key.
    package init?(_ bytes: [UInt8]) {
        var reader = WireReader(bytes)
        guard let type = reader.readString(), !type.isEmpty, type.count <= 64, type.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            return nil
        }
        self.bytes = bytes
        self.type = String(decoding: type, as: UTF8.self)
    }

    /// The SHA-256 of the key in Base64 without padding, as OpenSSH shows it.
    package var fingerprint: String {
        "SHA256:" + Data(SHA256.hash(data: bytes)).base64EncodedString().prefix { $0 != "=" }
    }
}

/// Reads the data types of SSH (RFC 4251, section 5). Never reads beyond the end of the bytes.
struct WireReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) {
        rest = bytes[...]
    }

    mutating func readByte() -> UInt8? {
        rest.popFirst()
    }

    mutating func readUInt32() -> UInt32? {
        guard rest.count >= 4 else { return nil }
        defer { rest = rest.dropFirst(4) }
        return rest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
    }

    mutating func readBytes(_ count: Int) -> [UInt8]? {
        guard count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func readString() -> [UInt8]? {
        let start = rest
        guard let count = readUInt32(), let bytes = readBytes(Int(count)) else {
            rest = start
            return nil
        }
        return bytes
    }
}

/// Writes the data types of SSH (RFC 4251, section 5).
struct WireWriter {
    private(set) var bytes: [UInt8] = []

    mutating func write(_ value: UInt32) {
        bytes += [UInt8(value >> 24), UInt8(value >> 16 & 0xFF), UInt8(value >> 8 & 0xFF), UInt8(value & 0xFF)]
    }

    mutating func write(byte: UInt8) {
        bytes.append(byte)
    }

    mutating func write(string: [UInt8]) {
        write(UInt32(string.count))
        bytes += string
    }
}
