import CSSH2
import Logging
import TransferCore

/// The steps before a session can have channels: key exchange, host key check and authentication.
struct SessionOpening {
    private let session: SSHSession
    private let settings: SSHSettings
    private let secrets: SecretReader
    private let logger: Logger

    init(_ session: SSHSession, _ settings: SSHSettings, secrets: SecretReader, logger: Logger) {
        self.session = session
        self.settings = settings
        self.secrets = secrets
        self.logger = logger
    }

    func run() throws -> SSHConnection.Agreement {
        let check = try HostKeyCheck(settings, logger: logger)
        try setPreferences(knownTypes: check.knownTypes)
        try performHandshake()
        guard let key = hostKey else {
            throw TransferError(.trust, .serverNotTrusted, "The server \(settings.server) presented no host key.")
        }
        let recognition = try check.recognize(key)
        logger.info(
            "SSH server recognized",
            metadata: ["server": "\(settings.server)", "fingerprint": "\(key.fingerprint)", "by": "\(recognition)"])
        var authentication = Authentication(session, settings, secrets: secrets, logger: logger)
        let method = try authentication.run()
        let version = unsafe libssh2_session_banner_get(session.pointer).map { unsafe String(cString: $0) } ?? ""
        let agreement = SSHConnection.Agreement(
            serverVersion: printable(version.utf8), methods: agreedMethods, hostKeyFingerprint: key.fingerprint,
            authenticationMethod: method)
        logger.info(
            "SSH connection established",
            metadata: [
                "server": "\(settings.server)", "user": "\(settings.user)", "authentication": "\(method)",
                "version": "\(agreement.serverVersion)", "methods": "\(agreement.methods.joined(separator: ","))",
            ])
        return agreement
    }

    // MARK: Keys

    private func setPreferences(knownTypes: [String]) throws(TransferError) {
        let types = MethodPreferences.hostKeyTypes(
            known: knownTypes, refused: settings.refusedKeyTypes, allowsSHA1: settings.allowsSHA1)
        for preference in MethodPreferences.all(hostKeyTypes: types, allowsSHA1: settings.allowsSHA1) {
            let names = supported(preference.names, kind: preference.kind)
            guard !names.isEmpty,
                unsafe libssh2_session_method_pref(session.pointer, preference.kind, names.joined(separator: ",")) == 0
            else {
                throw TransferError(
                    .unsupported, .unsupported,
                    "This machine's libssh2 \(SSHSession.libraryVersion) supports none of the SSH algorithms that TransferKit considers safe.",
                    cause: session.lastError.text)
            }
        }
    }

    /// Returns the given methods that libssh2 supports, in the same order.
    ///
    /// libssh2_session_method_pref(3) also removes unsupported methods. In libssh2 1.10, however, it can garble the list, because it copies between
    /// overlapping ranges with memcpy(3).
    private func supported(_ names: [String], kind: CInt) -> [String] {
        var list: UnsafeMutablePointer<UnsafePointer<CChar>?>? = nil
        let count = unsafe libssh2_session_supported_algs(session.pointer, kind, &list)
        guard count > 0, let list = unsafe list else { return [] }
        defer { unsafe libssh2_free(session.pointer, list) }
        let known = Set((0..<Int(count)).compactMap { index in unsafe list[index].map { unsafe String(cString: $0) } })
        return names.filter(known.contains)
    }

    private func performHandshake() throws {
        let deadline = Deadline(
            in: settings.handshakeTimeout,
            TransferError(
                .unreachable, .timedOut,
                "The server \(settings.server) accepted the connection, but did not complete the key exchange within \(settings.handshakeTimeout)."
            ))
        let code: CInt
        do {
            code = try session.complete(by: deadline) { unsafe libssh2_session_handshake(session.pointer, session.socket) }
        } catch let error as TransferError where !hasGreeted {
            throw session.traffic.received == 0 ? error : unexpectedGreetingError
        }
        guard code == 0 else { throw handshakeFailure(code, deadline) }
    }

    private var hasGreeted: Bool {
        let greeting = String(decoding: session.traffic.greeting, as: UTF8.self)
        return greeting.hasPrefix("SSH-") || greeting.contains("\nSSH-")
    }

    /// Messages that OpenSSH's server sends instead of its identification string: for too many unauthenticated clients (`MaxStartups`), and for
    /// a client whose address has a penalty (`PerSourcePenalties`, sshd_config(5)).
    private static let refusals = ["Exceeded MaxStartups", "Not allowed at this time"]

    private var unexpectedGreetingError: TransferError {
        let greeting = printable(session.traffic.greeting.prefix(60))
        if Self.refusals.contains(where: greeting.hasPrefix) {
            return TransferError(
                .transient, .serverError,
                "The SSH server \(settings.server) refuses new logins at the moment, because too many are in progress or have failed. "
                    + "Use fewer connections, or raise MaxStartups on the server.", cause: "the server sent: \(greeting)")
        }
        return TransferError(
            .unreachable, .notThisProtocol,
            "The service at \(settings.server) is not an SSH server; check the port.",
            cause: greeting.isEmpty ? nil : "the server sent: \(greeting)")
    }

    private func handshakeFailure(_ code: CInt, _ deadline: Deadline) -> TransferError {
        let traffic = session.traffic
        let details = [traffic.disconnectReason, session.lastError.text, "libssh2 error \(code)"].compactMap { $0 }.joined(separator: "; ")
        if traffic.hasExceededLimit {
            return TransferError(
                .unreachable, .notThisProtocol,
                "The service at \(settings.server) sent \(SocketTraffic.handshakeLimit) bytes without completing the key exchange; "
                    + "it is not an SSH server.")
        }
        if deadline.milliseconds == 0 { return hasGreeted || traffic.received == 0 ? deadline.error : unexpectedGreetingError }
        guard traffic.received > 0 else {
            return TransferError(
                .unreachable, .connectionLost,
                "The server \(settings.server) closed the connection without a message; it may be overloaded.",
                cause: details)
        }
        // The server sent the beginning of an identification string, so it is probably an SSH server, but the connection broke.
        if traffic.hasEnded, hasGreeted || "SSH-".utf8.starts(with: traffic.greeting) { return lostConnection(details) }
        guard hasGreeted else { return unexpectedGreetingError }
        switch code {
        case LIBSSH2_ERROR_KEX_FAILURE, LIBSSH2_ERROR_KEY_EXCHANGE_FAILURE, LIBSSH2_ERROR_METHOD_NONE, LIBSSH2_ERROR_METHOD_NOT_SUPPORTED:
            let hint =
                SSHSession.hasModernRSA
                ? "." : "; libssh2 \(SSHSession.libraryVersion) needs a host key of the type ed25519 or ecdsa; RSA needs 1.11 or later."
            return TransferError(
                .unsupported, .unsupported,
                "The server \(settings.server) and this machine have no safe algorithm in common: CBC ciphers and MD5 are never used, "
                    + "and SHA-1 is used only if the account allows it (allowSHA1)\(hint)", cause: details)
        case LIBSSH2_ERROR_HOSTKEY_INIT, LIBSSH2_ERROR_HOSTKEY_SIGN:
            return TransferError(
                .trust, .serverNotTrusted, "The server \(settings.server) could not prove possession of its host key.", cause: details)
        default: return lostConnection(details)
        }
    }

    private func lostConnection(_ cause: String) -> TransferError {
        TransferError(
            .transient, .connectionLost, "The connection to the server \(settings.server) broke during the key exchange.", cause: cause)
    }

    private var hostKey: HostKey? {
        var length = 0
        var type: CInt = 0
        guard let bytes = unsafe libssh2_session_hostkey(session.pointer, &length, &type) else { return nil }
        return HostKey(unsafe [UInt8](UnsafeRawBufferPointer(start: bytes, count: length)))
    }

    private var agreedMethods: [String] {
        let kinds = [
            LIBSSH2_METHOD_KEX, LIBSSH2_METHOD_HOSTKEY, LIBSSH2_METHOD_CRYPT_CS, LIBSSH2_METHOD_CRYPT_SC, LIBSSH2_METHOD_MAC_CS,
            LIBSSH2_METHOD_MAC_SC,
        ]
        return kinds.compactMap { kind in
            unsafe libssh2_session_methods(session.pointer, CInt(kind)).map { unsafe String(cString: $0) }
        }
    }
}
