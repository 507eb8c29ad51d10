import Logging
import SystemPackage
import TransferCore

/// The error for a server whose key is not pinned. The server may have a second key, of another type, that is pinned.
struct UnpinnedHostKey: Error {
    let key: HostKey
}

/// Verifies a server's host key before the client sends credentials.
struct HostKeyCheck {
    private let settings: SSHSettings
    private let host: HostName
    private let known: KnownHosts

    /// Reads the known hosts files, unless keys are pinned. A missing file counts as empty.
    ///
    /// - Throws: A `TransferError` of the class `trust` that names a file that can't be read.
    init(_ settings: SSHSettings, logger: Logger) throws(TransferError) {
        self.settings = settings
        host = HostName(settings.host, port: settings.port)
        var known = KnownHosts()
        if case .pinned = settings.hostKeys.trust {
            // With pinned keys, the files are ignored.
        } else {
            for path in [settings.hostKeys.userFile].compactMap({ $0 }) + settings.hostKeys.systemFiles {
                guard let content = try KnownHostsFile(path: path).read() else { continue }
                known.add(content, file: path.string)
            }
        }
        self.known = known
        for fault in known.faults.filter(\.hasMarker) + known.faults.filter({ !$0.hasMarker }).prefix(Self.maximumPlainFaultsLogged) {
            logger.warning(
                "A line of a known hosts file is invalid and was ignored",
                metadata: ["line": "\(fault.location)", "hasMarker": "\(fault.hasMarker)"])
        }
        let unrecorded = known.markedFaultCount - known.faults.count(where: \.hasMarker)
        if unrecorded > 0 {
            logger.warning(
                "More lines with a marker in the known hosts files are invalid and were ignored", metadata: ["count": "\(unrecorded)"])
        }
        for entry in known.revocations(of: host) {
            logger.notice(
                "A key of the SSH server is revoked",
                metadata: ["server": "\(settings.server)", "line": "\(entry.location)", "fingerprint": "\(entry.key.fingerprint)"])
        }
    }

    private static let maximumPlainFaultsLogged = 10

    /// A sentence that lists up to three invalid lines, for the error about an unknown or changed key; empty if all lines are valid.
    private var faultyLines: String {
        guard !known.faults.isEmpty else { return "" }
        // A line with a marker may be a misspelled revocation of the key.
        let faults = known.faults.filter(\.hasMarker) + known.faults.filter { !$0.hasMarker }
        let locations = faults.prefix(3).map(\.location).joined(separator: ", ")
        let more = known.faults.count > 3 ? " and others" : ""
        return " Invalid lines: \(locations)\(more)."
    }

    var knownTypes: [String] { known.keyTypes(of: host) }

    /// Verifies that the server's key is trusted. Adds the key of an unknown server to the user's file if the policy allows it.
    ///
    /// - Returns: The reason for trusting the key, for the log.
    /// - Throws: A `TransferError` of the class `trust`; ``UnpinnedHostKey`` if the policy pins other keys.
    func recognize(_ key: HostKey) throws -> String {
        if case .pinned(let fingerprints) = settings.hostKeys.trust { return try recognize(key, pinned: fingerprints) }
        switch known.verdict(on: key, of: host) {
        case .known(let entry): return entry.location
        case .revoked(let entry):
            throw error(
                "The \(key.shown) of the server \(settings.server) is revoked by \(entry.location); another server may be impersonating it."
            )
        case .otherKeys(let entries): throw changed(key, entries)
        case .certificateAuthority(let entry):
            throw error(
                "The server \(settings.server) is listed only through a certificate authority (\(entry.location)), which TransferKit "
                    + "does not support; add the server's \(key.shown) to a known hosts file after verifying it.")
        case .unknown:
            guard settings.hostKeys.trust == .acceptNew, let path = settings.hostKeys.userFile else { throw unknown(key) }
            try KnownHostsFile(path: path).append(KnownHosts.line(key, of: host))
            return "first use, added to \(path)"
        }
    }

    private func recognize(_ key: HostKey, pinned fingerprints: [String]) throws(UnpinnedHostKey) -> String {
        // OpenSSH writes fingerprints without padding, and some programs with padding.
        let own = key.fingerprint
        if fingerprints.contains(where: { $0.prefix { $0 != "=" } == own }) { return "pinned fingerprint" }
        throw UnpinnedHostKey(key: key)
    }

    static func unpinned(_ keys: [HostKey], _ settings: SSHSettings) -> TransferError {
        var pinned: [String] = []
        if case .pinned(let fingerprints) = settings.hostKeys.trust { pinned = fingerprints.map { printable($0.utf8) } }
        let hint =
            SSHSession.hasModernRSA
            ? ""
            : " If an RSA key is pinned: libssh2 \(SSHSession.libraryVersion) can't check RSA keys; pin another key, or use libssh2 1.11 or later."
        return TransferError(
            .trust, .serverNotTrusted,
            "The server \(settings.server) presents the \(keys.map(\.shown).joined(separator: " and the ")), but only these keys "
                + "are pinned: \(pinned.joined(separator: ", ")). Another server may be impersonating it.\(hint)")
    }

    private func changed(_ key: HostKey, _ entries: [KnownHosts.Entry]) -> TransferError {
        let same = entries.filter { $0.key.type == key.type }
        let shown = (same.isEmpty ? entries : same).prefix(3).map { "the \($0.key.shown) (\($0.location))" }.joined(separator: ", ")
        if same.isEmpty, !SSHSession.hasModernRSA, entries.allSatisfy({ $0.key.type == "ssh-rsa" }) {
            return error(
                "The known hosts files have only \(shown) for the server \(settings.server), and libssh2 \(SSHSession.libraryVersion) "
                    + "can't check RSA keys; add the server's \(key.shown) to a known hosts file after verifying it, "
                    + "or use libssh2 1.11 or later.")
        }
        return error(
            "The server \(settings.server) presents the \(key.shown), but is known by \(shown). Its key changed, or another server "
                + "is impersonating it. If the change is genuine, remove every outdated line.\(faultyLines)")
    }

    private func unknown(_ key: HostKey) -> TransferError {
        let file = settings.hostKeys.userFile.map { " to \($0)" } ?? ""
        return error(
            "The server \(settings.server) is not known. It presents the \(key.shown); verify it and add it\(file), "
                + "for example with ssh-keyscan -p \(settings.port) \(printable(settings.host.utf8)).\(faultyLines)")
    }

    private func error(_ message: String) -> TransferError {
        TransferError(.trust, .serverNotTrusted, message)
    }
}

extension HostKey {
    fileprivate var shown: String { "\(type) key \(fingerprint)" }
}
