import Logging
import SystemPackage
import TransferCore

/// A server's key is not the pinned one; another of its keys, of another type, may be.
struct UnpinnedHostKey: Error {
    let key: HostKey
}

/// Makes sure that a server is the one that it should be, before anything is told to it.
struct HostKeyCheck {
    private let settings: SSHSettings
    private let host: HostName
    private let known: KnownHosts

    /// Reads the files of known hosts. One that does not exist says nothing.
    ///
    /// - Throws: A `TransferError` of the class `trust` that names a file that can't be read.
    init(_ settings: SSHSettings, logger: Logger) throws(TransferError) {
        self.settings = settings
        host = HostName(settings.host, port: settings.port)
        var known = KnownHosts()
        if case .pinned = settings.hostKeys.trust {
            // The files don't count.
        } else {
            for path in [settings.hostKeys.userFile].compactMap({ $0 }) + settings.hostKeys.systemFiles {
                guard let content = try KnownHostsFile(path: path).read() else { continue }
                known.add(content, file: path.string)
            }
        }
        self.known = known
        for fault in known.faults.prefix(Self.mostFaultsLogged) {
            logger.warning(
                "A line of a file of known hosts can't be understood and is ignored",
                metadata: ["line": "\(fault.place)", "hasMarker": "\(fault.hasMarker)"])
        }
        for entry in known.revocations(of: host) {
            logger.notice(
                "A key of the SSH server is revoked",
                metadata: ["server": "\(settings.server)", "line": "\(entry.place)", "fingerprint": "\(entry.key.fingerprint)"])
        }
    }

    private static let mostFaultsLogged = 10

    /// Names the lines that can't be understood, in an error about a server that is not known.
    private var faultyLines: String {
        guard !known.faults.isEmpty else { return "" }
        let places = known.faults.prefix(3).map(\.place).joined(separator: ", ")
        let more = known.faults.count > 3 ? " and others" : ""
        return " Lines that can't be understood: \(places)\(more)."
    }

    /// The types of keys that the server is known by.
    var knownTypes: [String] { known.keyTypes(of: host) }

    /// - Returns: What the server is known by, for the log.
    /// - Throws: A `TransferError` of the class `trust`, with what the server shows and what is known of it; ``UnpinnedHostKey``.
    func recognize(_ key: HostKey) throws -> String {
        if case .pinned(let fingerprints) = settings.hostKeys.trust { return try recognize(key, pinned: fingerprints) }
        switch known.verdict(on: key, of: host) {
        case .known(let entry): return entry.place
        case .revoked(let entry):
            throw error(
                "The \(key.shown) of the server \(settings.server) is revoked by \(entry.place); somebody may pretend to be the server.")
        case .otherKeys(let entries): throw changed(key, entries)
        case .certificateAuthority(let entry):
            throw error(
                "The server \(settings.server) is known only by its certificate authority (\(entry.place)), which is not supported; "
                    + "add its \(key.shown) to a file of known hosts once you made sure of it.")
        case .unknown:
            guard settings.hostKeys.trust == .acceptNew, let path = settings.hostKeys.userFile else { throw unknown(key) }
            try KnownHostsFile(path: path).append(KnownHosts.line(key, of: host))
            return "first use, added to \(path)"
        }
    }

    private func recognize(_ key: HostKey, pinned fingerprints: [String]) throws(UnpinnedHostKey) -> String {
        // Padding is no part of OpenSSH's fingerprints, but of other programs'.
        let own = key.fingerprint
        if fingerprints.contains(where: { $0.prefix { $0 != "=" } == own }) { return "pinned fingerprint" }
        throw UnpinnedHostKey(key: key)
    }

    /// The error for a server none of whose keys is pinned.
    static func unpinned(_ keys: [HostKey], _ settings: SSHSettings) -> TransferError {
        var pinned: [String] = []
        if case .pinned(let fingerprints) = settings.hostKeys.trust { pinned = fingerprints.map { printable($0.utf8) } }
        let hint =
            SSHSession.hasModernRSA
            ? ""
            : " If an RSA key is pinned: libssh2 \(SSHSession.libraryVersion) can't check those; pin another key, or use 1.11 or later."
        return TransferError(
            .trust, .serverNotTrusted,
            "The server \(settings.server) shows the \(keys.map(\.shown).joined(separator: " and the ")), and none that is pinned "
                + "(\(pinned.joined(separator: ", "))); somebody may pretend to be the server.\(hint)")
    }

    private func changed(_ key: HostKey, _ entries: [KnownHosts.Entry]) -> TransferError {
        let same = entries.filter { $0.key.type == key.type }
        let shown = (same.isEmpty ? entries : same).prefix(3).map { "the \($0.key.shown) (\($0.place))" }.joined(separator: ", ")
        if same.isEmpty, !SSHSession.hasModernRSA, entries.allSatisfy({ $0.key.type == "ssh-rsa" }) {
            return error(
                "The server \(settings.server) is known by \(shown) only, and libssh2 \(SSHSession.libraryVersion) can't check RSA keys; "
                    + "add its \(key.shown) to a file of known hosts once you made sure of it, or use libssh2 1.11 or later.")
        }
        return error(
            "The server \(settings.server) shows the \(key.shown), but is known by \(shown). Its key changed, or somebody pretends to be the "
                + "server. If you made sure that it changed, remove that line.\(faultyLines)")
    }

    private func unknown(_ key: HostKey) -> TransferError {
        let file = settings.hostKeys.userFile.map { " to \($0)" } ?? ""
        return error(
            "The server \(settings.server) is not known. It shows the \(key.shown); add it\(file) once you made sure of it, "
                + "for example with ssh-keyscan -p \(settings.port) \(printable(settings.host.utf8)).\(faultyLines)")
    }

    private func error(_ message: String) -> TransferError {
        TransferError(.trust, .serverNotTrusted, message)
    }
}

extension HostKey {
    /// The key in messages.
    fileprivate var shown: String { "\(type) key \(fingerprint)" }
}
