import Foundation

/// The content of known hosts files (sshd(8), SSH_KNOWN_HOSTS FILE FORMAT).
package struct KnownHosts: Sendable {
    package struct Entry: Sendable {
        package enum Marker: Sendable {
            case none
            case revoked
            case certificateAuthority
        }

        package let marker: Marker
        let hosts: HostPatterns
        package let key: HostKey
        package let file: String
        /// The number of the line, counted from 1.
        package let line: Int

        /// The file and the line as shown in messages.
        package var location: String { "\(file):\(line)" }
    }

    package enum Verdict: Sendable {
        case known(Entry)
        case revoked(Entry)
        /// The files contain only other keys of the server, of the same type or of other types. The list is not empty.
        case otherKeys([Entry])
        /// The files contain no key of the server, but a certificate authority for it.
        case certificateAuthority(Entry)
        case unknown
    }

    /// An invalid line.
    package struct Fault: Hashable, Sendable {
        /// The file and the number of the line, counted from 1.
        package let location: String
        /// Whether the line begins with `@`, like the markers `@revoked` and `@cert-authority`. If so, the user probably meant to revoke a
        /// key or to add a certificate authority.
        package let hasMarker: Bool
    }

    package private(set) var entries: [Entry] = []
    /// The invalid lines, which have no effect. Contains at most the first 100 lines with a marker and the first 100 other lines.
    package private(set) var faults: [Fault] = []
    /// The number of all invalid lines with a marker, including those that ``faults`` omits. Such a line may be a misspelled revocation.
    package private(set) var markedFaultCount = 0
    private var plainFaultCount = 0
    private static let maximumFaults = 100

    package init() {}

    /// Adds the lines of a file. Adds invalid lines to ``faults``.
    package mutating func add(_ content: [UInt8], file: String) {
        for (index, line) in content.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            if let entry = Self.entry(line, file: file, line: index + 1) {
                entries.append(entry)
            } else if let first = line.first(where: { $0 != 0x20 && $0 != 0x09 && $0 != 0x0D }), first != UInt8(ascii: "#") {
                let hasMarker = first == UInt8(ascii: "@")
                if hasMarker { markedFaultCount += 1 } else { plainFaultCount += 1 }
                guard (hasMarker ? markedFaultCount : plainFaultCount) <= Self.maximumFaults else { continue }
                faults.append(Fault(location: "\(file):\(index + 1)", hasMarker: hasMarker))
            }
        }
    }

    private static func entry(_ bytes: ArraySlice<UInt8>, file: String, line: Int) -> Entry? {
        // A line with a key is much shorter than this limit.
        guard bytes.count <= 64 << 10 else { return nil }
        var fields = bytes.split(maxSplits: 4) { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }[...]
        guard let first = fields.first, first.first != UInt8(ascii: "#") else { return nil }
        var marker = Entry.Marker.none
        if first.first == UInt8(ascii: "@") {
            switch String(decoding: first, as: UTF8.self) {
            case "@revoked": marker = .revoked
            case "@cert-authority": marker = .certificateAuthority
            default: return nil
            }
            fields = fields.dropFirst()
        }
        guard fields.count >= 3 else { return nil }
        let parts = fields.prefix(3).map { String(decoding: $0, as: UTF8.self) }
        guard let hosts = HostPatterns(parts[0]), let data = Data(base64Encoded: parts[2]), let key = HostKey([UInt8](data)),
            key.type == parts[1]
        else { return nil }
        return Entry(marker: marker, hosts: hosts, key: key, file: file, line: line)
    }

    package func keyTypes(of host: HostName) -> [String] {
        entries.filter { $0.marker == .none && $0.hosts.match(host) }.map(\.key.type)
            .reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    package func revocations(of host: HostName) -> [Entry] { entries.filter { $0.marker == .revoked && $0.hosts.match(host) } }

    /// Compares a server's key with the lines for the server. A revocation takes precedence over all other lines.
    package func verdict(on key: HostKey, of host: HostName) -> Verdict {
        let matching = entries.filter { $0.hosts.match(host) }
        if let entry = matching.first(where: { $0.marker == .revoked && $0.key == key }) { return .revoked(entry) }
        let plain = matching.filter { $0.marker == .none }
        if let entry = plain.first(where: { $0.key == key }) { return .known(entry) }
        if !plain.isEmpty { return .otherKeys(plain) }
        if let entry = matching.first(where: { $0.marker == .certificateAuthority }) { return .certificateAuthority(entry) }
        return .unknown
    }

    static func line(_ key: HostKey, of host: HostName) -> String {
        "\(host.knownAs) \(key.type) \(Data(key.bytes).base64EncodedString())"
    }
}
