import CSSH2
import Logging
import TransferCore

/// Authenticates the user with the agent's keys, the key files, responses to the server's prompts, and the password, in this order.
struct Authentication {
    private enum Outcome {
        /// The associated value is the method, for the log.
        case accepted(String)
        /// The server rejected all of the tried credentials, or the client had none to try.
        case refused
    }

    private let session: SSHSession
    private let settings: SSHSettings
    private let secrets: SecretReader
    private let logger: Logger
    private let deadline: Deadline
    private var offered: Set<String> = []
    /// The number of attempts that reached the server, at most ``SSHAuthentication/maximumAttempts``.
    private var attempts = 0
    /// The attempts that the server rejected, for the error message.
    private var refusals: [String] = []
    /// The credentials that could not be tried, with the reasons, for the error message.
    private var obstacles: [String] = []

    init(_ session: SSHSession, _ settings: SSHSettings, secrets: SecretReader, logger: Logger) {
        self.session = session
        self.settings = settings
        self.secrets = secrets
        self.logger = logger
        deadline = Deadline(
            in: settings.authenticationTimeout,
            TransferError(
                .transient, .timedOut,
                "The server \(settings.server) did not log in the user \(printable(settings.user.utf8)) within \(settings.authenticationTimeout)."
            ))
    }

    /// Tries the methods until the server accepts one.
    ///
    /// - Returns: The accepted method, for the log.
    /// - Throws: `CancellationError`, or a `TransferError` of the class `credentials` that lists all attempts. The class is `transient` if
    ///   the connection broke or the time limit has passed. If the credential provider throws a `TransferError` of a class other than
    ///   `credentials`, this method throws that error.
    mutating func run() throws -> String {
        if try requestMethods() { return "none" }
        if offered.contains("publickey") {
            if case .accepted(let method) = try tryAgent() { return method }
            if case .accepted(let method) = try tryKeyFiles() { return method }
        }
        guard let reference = settings.authentication.password else { throw failure }
        // If the server requires a key and then a password, it offers the second method only after it has accepted the key (RFC 4252, section 5.1).
        if offered.isDisjoint(with: ["password", "keyboard-interactive"]), attempts > 0, try requestMethods() { return "none" }
        if !offered.isDisjoint(with: ["password", "keyboard-interactive"]), let password = try read(reference, for: "the password") {
            if case .accepted(let method) = try tryKeyboard(password) { return method }
            if case .accepted(let method) = try tryPassword(password) { return method }
        }
        throw failure
    }

    // MARK: Methods

    /// Requests the server's authentication methods by trying to log in without credentials.
    ///
    /// - Returns: Whether the server accepted the login without credentials.
    private mutating func requestMethods() throws -> Bool {
        var list: UnsafeMutablePointer<CChar>?
        let user = settings.user
        let code = try session.complete(by: deadline) {
            unsafe list = libssh2_userauth_list(session.pointer, user, UInt32(user.utf8.count))
            return unsafe list == nil ? libssh2_session_last_errno(session.pointer) : 0
        }
        guard let list = unsafe list else {
            if unsafe libssh2_userauth_authenticated(session.pointer) == 1 { return true }
            try checkStopAndDeadline()
            throw lost(code)
        }
        offered = Set(unsafe String(cString: list).split(separator: ",").map(String.init))
        return false
    }

    private mutating func tryAgent() throws -> Outcome {
        guard let path = settings.authentication.agent.path else { return .refused }
        let client: AgentClient
        let keys: [HostKey]
        do throws(AgentClient.Failure) {
            client = try AgentClient(path: path, mailbox: secrets.mailbox)
            // After a timeout, the agent client throws its own error, never the deadline's error.
            keys = try client.identities(by: Deadline(in: settings.authentication.agentListTimeout, deadline.error))
        } catch {
            try checkStopAndDeadline()
            obstacles.append("the agent at \(path): \(error.text)")
            return .refused
        }
        // Reserves some of the allowed attempts for the key files and the password.
        let reserved = min(settings.authentication.keyFiles.count, 2) + (settings.authentication.password == nil ? 0 : 1)
        let limit = max(1, settings.authentication.maximumAttempts - reserved)
        for key in keys.prefix(64) where attempts < limit {
            if let obstacle = Self.obstacle(for: key.type) {
                obstacles.append("the agent's key \(key.fingerprint): \(obstacle)")
                continue
            }
            let outcome = try sign(with: AgentSigner(client: client, key: key, deadline: deadline))
            if case .accepted = outcome { return outcome }
        }
        return .refused
    }

    private mutating func sign(with signer: AgentSigner) throws -> Outcome {
        session.traffic.signer = signer
        defer { session.traffic.signer = nil }
        var context: UnsafeMutableRawPointer? = unsafe Unmanaged.passUnretained(session.traffic).toOpaque()
        let user = settings.user
        let outcome = try attempt("the agent's key \(signer.key.fingerprint)", as: "publickey (agent, \(signer.key.fingerprint))") {
            [session] in
            unsafe signer.key.bytes.withUnsafeBufferPointer { key in
                unsafe libssh2_userauth_publickey(
                    session.pointer, user, key.baseAddress, key.count,
                    { _, signature, length, data, dataLength, context in
                        unsafe AgentSigner.sign(context, data, dataLength, signature, length)
                    }, &context)
            }
        }
        if let failure = signer.failure { obstacles.append("the agent: \(failure.text)") }
        return outcome
    }

    private mutating func tryKeyFiles() throws -> Outcome {
        for file in settings.authentication.keyFiles where attempts < settings.authentication.maximumAttempts {
            let key: PrivateKeyFile
            do throws(TransferError) {
                key = try PrivateKeyFile(file.path)
            } catch {
                obstacles.append(error.description)
                continue
            }
            if let obstacle = key.type.flatMap(Self.obstacle(for:)) {
                obstacles.append("the key file \(file.path): \(obstacle)")
                continue
            }
            var passphrase = Secret("")
            if key.isEncrypted {
                guard let reference = file.passphrase else {
                    obstacles.append("the key file \(file.path): it is encrypted, and no passphrase is given")
                    continue
                }
                guard let secret = try read(reference, for: "the passphrase of \(file.path)") else { continue }
                passphrase = secret
            }
            let outcome = try tryKey(key, passphrase)
            if case .accepted = outcome { return outcome }
        }
        return .refused
    }

    private mutating func tryKey(_ key: PrivateKeyFile, _ passphrase: Secret) throws -> Outcome {
        let user = settings.user
        let hasPassphrase = key.isEncrypted
        return try attempt("the key file \(key.path)", as: "publickey (\(key.path))", hasPassphrase: hasPassphrase) { [session] in
            unsafe key.content.withUnsafeBytes { content in
                unsafe libssh2_userauth_publickey_frommemory(
                    session.pointer, user, user.utf8.count, nil, 0, content.baseAddress?.assumingMemoryBound(to: CChar.self),
                    // The library requires a terminating zero, but the count excludes it.
                    content.count - 1, passphrase.reveal())
            }
        }
    }

    private mutating func tryKeyboard(_ password: Secret) throws -> Outcome {
        guard offered.contains("keyboard-interactive"), attempts < settings.authentication.maximumAttempts else { return .refused }
        session.traffic.keyboardResponder = KeyboardResponder(password)
        defer { session.traffic.keyboardResponder = nil }
        let user = settings.user
        return try attempt("the password (keyboard-interactive)", as: "keyboard-interactive") { [session] in
            unsafe libssh2_userauth_keyboard_interactive_ex(
                session.pointer, user, UInt32(user.utf8.count),
                { _, _, _, _, count, prompts, responses, context in
                    unsafe SocketTraffic.from(context)?.keyboardResponder?.respond(count, prompts, responses)
                })
        }
    }

    private mutating func tryPassword(_ password: Secret) throws -> Outcome {
        guard offered.contains("password"), attempts < settings.authentication.maximumAttempts else { return .refused }
        let user = settings.user
        return try attempt("the password", as: "password") { [session] in
            let value = password.reveal()
            return unsafe libssh2_userauth_password_ex(
                session.pointer, user, UInt32(user.utf8.count), value, UInt32(value.utf8.count), nil)
        }
    }

    // MARK: Results

    /// Makes one attempt to log in.
    ///
    /// - Parameters:
    ///   - what: The name of the credentials as shown in messages.
    ///   - method: The method and its credentials, for the log.
    ///   - hasPassphrase: Whether a passphrase decrypts the key.
    ///   - call: Calls libssh2. Called again while it returns EAGAIN.
    private mutating func attempt(_ what: String, as method: String, hasPassphrase: Bool = false, _ call: () -> CInt) throws -> Outcome {
        attempts += 1
        let code = try session.complete(by: deadline, call)
        guard code != 0 else { return .accepted(method) }
        // After the deadline, ``SocketTraffic`` reads no more bytes, and libssh2 reports the missing response as a rejection. So check the
        // deadline first.
        try checkStopAndDeadline()
        logger.debug("SSH authentication refused", metadata: ["server": "\(settings.server)", "method": "\(method)"])
        // The library also uses these codes for damaged key files and for prompts that it can't process.
        let isAmbiguous = code == LIBSSH2_ERROR_PROTO || code == LIBSSH2_ERROR_OUT_OF_BOUNDARY
        if session.isLost(code) && !isAmbiguous || session.traffic.hasEnded { throw lost(code) }
        switch code {
        case LIBSSH2_ERROR_AUTHENTICATION_FAILED, LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED:
            refusals.append(what)
        case LIBSSH2_ERROR_PASSWORD_EXPIRED:
            refusals.append("\(what), which has expired and must be changed")
        default:
            // libssh2 could not use the key and sent no request, so don't count this attempt.
            attempts -= 1
            let hint = hasPassphrase ? "the passphrase may be wrong" : "it can't be used"
            obstacles.append("\(what): \(hint) (\(session.lastError.text))")
        }
        return .refused
    }

    /// The reason why libssh2 or most servers reject keys of a type, for messages; nil if they accept such keys.
    private static func obstacle(for type: String) -> String? {
        if type == "ssh-dss" { return "DSA keys are no longer accepted; make an ed25519 key" }
        if type.hasPrefix("sk-") { return "keys that need a security key are not supported" }
        guard !SSHSession.hasModernRSA else { return nil }
        if type == "ssh-rsa" {
            return "libssh2 \(SSHSession.libraryVersion) can use RSA keys only with SHA-1 signatures, which servers refuse; "
                + "use an ed25519 or ecdsa key, or libssh2 1.11 or later"
        }
        return type.contains("-cert-") ? "libssh2 \(SSHSession.libraryVersion) can't use certificates" : nil
    }

    private mutating func read(_ reference: CredentialReference, for what: String) throws -> Secret? {
        switch try secrets.read(reference, by: deadline) {
        case .success(let secret): return secret
        // Another attempt may succeed, for example when the app's token server is available again.
        case .failure(let error as TransferError) where error.failureClass != .credentials: throw error
        case .failure(let error):
            obstacles.append("\(what): \(error)")
            return nil
        }
    }

    private func checkStopAndDeadline() throws {
        if secrets.mailbox.isStopping { throw CancellationError() }
        if deadline.milliseconds == 0 { throw deadline.error }
    }

    private var failure: TransferError {
        let user = printable(settings.user.utf8)
        let offers = offered.isEmpty ? "nothing" : offered.sorted().map { printable($0.utf8) }.joined(separator: ", ")
        let rest = obstacles.isEmpty ? "" : " Not tried: \(obstacles.joined(separator: "; "))."
        guard !refusals.isEmpty else {
            return TransferError(
                .credentials, obstacles.isEmpty ? .credentialsRejected : .credentialsUnavailable,
                "No credentials for \(user)@\(settings.server), which accepts \(offers)."
                    + (rest.isEmpty
                        ? " Add a key file or a password to the endpoint (transferq: --identity, --password-file), or a key to the agent."
                        : rest))
        }
        return TransferError(
            .credentials, .credentialsRejected,
            "The server \(settings.server) rejected the user \(user) with \(refusals.joined(separator: ", ")); it accepts \(offers).\(rest)"
        )
    }

    private func lost(_ code: CInt) -> TransferError {
        let reason = session.traffic.disconnectReason ?? session.lastError.text
        if attempts > 0, reason.lowercased().contains("authentication failures") {
            return TransferError(
                .credentials, .credentialsRejected,
                "The server \(settings.server) disconnected after \(attempts) attempts for the user \(printable(settings.user.utf8)): "
                    + "\(refusals.joined(separator: ", ")). Configure only credentials that the server accepts, or remove other keys from the agent.",
                cause: reason)
        }
        return TransferError(
            .transient, .connectionLost, "The server \(settings.server) closed the connection during authentication.",
            cause: "\(reason); libssh2 error \(code)")
    }
}
