@testable import SSHEngine

/// What SSH servers and files of known hosts say.
enum SSHTargets {
    private static let hosts = [
        HostName("example.com", port: 22), HostName("a.example.com", port: 2222), HostName("::1", port: 22), HostName("", port: 22),
    ]

    /// A file of known hosts.
    static func knownHosts(_ input: [UInt8]) {
        var known = KnownHosts()
        known.add(input, file: "known_hosts")
        require(known.entries.count <= input.count, "An entry takes bytes.")
        for host in hosts {
            let types = known.keyTypes(of: host)
            require(Set(types).count == types.count, "A type is there once.")
            for entry in known.entries.prefix(4) { check(entry, host, known) }
        }
        _ = HostKey(input)
    }

    private static func check(_ entry: KnownHosts.Entry, _ host: HostName, _ known: KnownHosts) {
        require(!entry.key.type.isEmpty && entry.key.fingerprint.hasPrefix("SHA256:"), "A key has a type and a fingerprint.")
        switch known.verdict(on: entry.key, of: host) {
        case .known(let found), .revoked(let found):
            require(found.key == entry.key, "The key that was found is the one that was asked for.")
        case .otherKeys(let others):
            require(!others.isEmpty && !others.contains { $0.key == entry.key }, "Other keys are others.")
        case .certificateAuthority, .unknown: break
        }
        // A line that is appended for a host and a key makes that key known there, unless it is revoked.
        var file = KnownHosts()
        file.add(Array(KnownHosts.line(entry.key, of: host).utf8), file: "written")
        guard !host.knownAs.isEmpty else { return }
        guard case .known = file.verdict(on: entry.key, of: host) else {
            return require(false, "A line that is written is read again: \(KnownHosts.line(entry.key, of: host))")
        }
    }
}
