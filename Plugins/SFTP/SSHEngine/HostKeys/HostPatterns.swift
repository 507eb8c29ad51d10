import Crypto
import Foundation

/// The name of a server in known hosts files.
package struct HostName: Hashable, Sendable {
    /// The name in lower case, as `[host]:port` unless the port is 22.
    let knownAs: String

    package init(_ host: String, port: UInt16) {
        let name = String(decoding: host.utf8.map(lowercase), as: UTF8.self)
        knownAs = port == 22 ? name : "[\(name)]:\(port)"
    }
}

/// The hosts field of a line of a known hosts file. Like OpenSSH, the client compares names byte by byte.
enum HostPatterns: Sendable {
    /// The HMAC-SHA1 of a name, with its salt.
    case hashed(salt: [UInt8], hash: [UInt8])
    case list([Pattern])

    struct Pattern: Sendable {
        let isNegated: Bool
        let text: [UInt8]
    }

    init?(_ field: String) {
        if field.utf8.first == UInt8(ascii: "|") {
            let parts = field.utf8.split(separator: UInt8(ascii: "|"), omittingEmptySubsequences: false).map { Data($0) }
            guard parts.count == 4, parts[1].elementsEqual("1".utf8), let salt = Data(base64Encoded: parts[2]),
                let hash = Data(base64Encoded: parts[3]), hash.count == Insecure.SHA1.byteCount
            else { return nil }
            self = .hashed(salt: [UInt8](salt), hash: [UInt8](hash))
        } else {
            let patterns = field.utf8.map(lowercase).split(separator: UInt8(ascii: ",")).map { part in
                let isNegated = part.first == UInt8(ascii: "!")
                return Pattern(isNegated: isNegated, text: Array(isNegated ? part.dropFirst() : part))
            }
            guard !patterns.isEmpty, patterns.allSatisfy({ !$0.text.isEmpty }) else { return nil }
            self = .list(patterns)
        }
    }

    /// A matching negated pattern overrides all others on the line.
    func match(_ host: HostName) -> Bool {
        switch self {
        case .hashed(let salt, let hash):
            let code = HMAC<Insecure.SHA1>.authenticationCode(for: Array(host.knownAs.utf8), using: SymmetricKey(data: salt))
            return Array(code) == hash
        case .list(let patterns):
            let name = Array(host.knownAs.utf8)
            let matching = patterns.filter { $0.matches(name) }
            return !matching.isEmpty && !matching.contains { $0.isNegated }
        }
    }
}

extension HostPatterns.Pattern {
    /// `*` matches any bytes, and `?` matches one byte. Backtracks only to the last `*`, so the time is at most proportional to the length of
    /// the pattern multiplied by the length of the name.
    func matches(_ name: [UInt8]) -> Bool {
        var (position, index) = (0, 0)
        var retry: (position: Int, index: Int)?
        while index < name.count {
            if position < text.count, text[position] == UInt8(ascii: "*") {
                retry = (position, index)
                position += 1
            } else if position < text.count, text[position] == name[index] || text[position] == UInt8(ascii: "?") {
                position += 1
                index += 1
            } else if let last = retry {
                retry = (last.position, last.index + 1)
                (position, index) = (last.position + 1, last.index + 1)
            } else {
                return false
            }
        }
        return text[position...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}

/// Host names ignore the case of ASCII letters only.
private func lowercase(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
}
