@testable import SSHEngine

/// Targets for known hosts files and host keys.
enum SSHTargets {
    private static let hosts = [
        HostName("example.com", port: 22), HostName("a.example.com", port: 2222), HostName("::1", port: 22), HostName("", port: 22),
    ]

    /// The target parses the input as a known hosts file, and also as a host key.
    static func knownHosts(_ input: [UInt8]) {
        var known = KnownHosts()
        known.add(input, file: "known_hosts")
        require(known.entries.count <= input.count, "Each entry uses at least one byte of the file.")
        for host in hosts {
            let types = known.keyTypes(of: host)
            require(Set(types).count == types.count, "Each type occurs once.")
            for entry in known.entries.prefix(4) { check(entry, host, known) }
        }
        _ = HostKey(input)
    }

    private static func check(_ entry: KnownHosts.Entry, _ host: HostName, _ known: KnownHosts) {
        require(!entry.key.type.isEmpty && entry.key.fingerprint.hasPrefix("SHA256:"), "A key has a type and a fingerprint.")
        switch known.verdict(on: entry.key, of: host) {
        case .known(let found), .revoked(let found):
            require(found.key == entry.key, "The found key is the requested key.")
        case .otherKeys(let others):
            require(!others.isEmpty && !others.contains { $0.key == entry.key }, "Other keys differ.")
        case .certificateAuthority, .unknown: break
        }
        // If a known hosts file contains the line that the engine writes for a host and a key, the key must be known. Skip hosts whose name a file
        // can't contain.
        var file = KnownHosts()
        file.add(Array(KnownHosts.line(entry.key, of: host).utf8), file: "written")
        guard !host.knownAs.isEmpty else { return }
        guard case .known = file.verdict(on: entry.key, of: host) else {
            return require(false, "A written line can be read: \(KnownHosts.line(entry.key, of: host))")
        }
    }
}
