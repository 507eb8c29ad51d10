import CurlEngine
import HTTPSupport
import Logging
import SystemPackage
import TransferCore

/// The way to connect to a server.
enum ServerRoute: Sendable {
    /// A direct connection.
    case direct
    /// A connection through a program's input and output, like OpenSSH's `ProxyCommand` (ssh_config(5)).
    case command(String)
    /// A connection with network options, such as a proxy or a network interface.
    case network(NetworkOptions, proxyPassword: CredentialReference?)

    /// Opens a connected socket, unless the route is ``direct``.
    ///
    /// - Returns: The socket, which the caller must close, and the program, if any; nil if the caller must connect directly.
    /// - Throws: A `TransferError`, or `CancellationError`.
    func open(
        to address: SFTPAddress, by engine: CurlEngine, credentials: any CredentialProvider, logger: Logger
    ) async throws -> (socket: FileDescriptor, program: ProxyProgram?)? {
        switch self {
        case .direct:
            return nil
        case .command(let template):
            let (program, socket) = try ProxyProgram.start(Self.command(template, address)) {
                logger.info("proxyCommand: \($0)", metadata: ["server": "\(address.serverName)"])
            }
            return (socket, program)
        case .network(let network, let reference):
            var password: Secret?
            if let reference { password = try await credentials.secret(for: reference) }
            var options = ConnectionOptions()
            network.apply(to: &options, proxyPassword: password, otherwise: .direct)
            do {
                return (try await engine.connect(host: address.host, port: address.port, options: options), nil)
            } catch let error as CurlEngineError {
                throw Self.failure(error, address)
            }
        }
    }

    private static func failure(_ error: CurlEngineError, _ address: SFTPAddress) -> TransferError {
        let server = address.serverName
        switch error.kind {
        case .invalidRequest: return TransferError(.permanent, .invalidEndpoint, error.message, cause: error.cause)
        case .outOfResources: return TransferError(.noSpace, .internalFailure, error.message, cause: error.cause)
        case .hostNotFound:
            return TransferError(
                .unreachable, .hostNotFound, "A host name on the route to \(server) can't be resolved.", cause: error.cause)
        case .proxyRefused:
            return TransferError(.unreachable, .connectionRefused, "The proxy refused the connection to \(server).", cause: error.cause)
        case .timedOut:
            return TransferError(.unreachable, .timedOut, "\(server) did not accept the connection in time.", cause: error.cause)
        default: return TransferError(.unreachable, .connectionRefused, "\(server) can't be reached.", cause: error.cause)
        }
    }

    /// Replaces `%h`, `%p` and `%r` with the host, the port and the user, as in ssh_config(5), "TOKENS".
    ///
    /// - Throws: A `TransferError` for an unknown token, and for a host or user that is unsafe in a command. The shell could split an unsafe name, or
    ///   the program could treat it as an option.
    private static func command(_ template: String, _ address: SFTPAddress) throws(TransferError) -> String {
        for word in [address.host, address.user] where word.hasPrefix("-") || !word.utf8.allSatisfy(isHarmless) {
            throw TransferError(
                .permanent, .invalidEndpoint,
                "proxyCommand can't be used with the host or user \(word.debugDescription), because a command could misinterpret that name."
            )
        }
        var command = ""
        var rest = template[...]
        while let percent = rest.firstIndex(of: "%") {
            command += rest[..<percent]
            rest = rest[rest.index(after: percent)...]
            switch rest.popFirst() {
            case "h": command += address.host
            case "p": command += "\(address.port)"
            case "r": command += address.user
            case "%": command += "%"
            default:
                throw TransferError(
                    .permanent, .invalidEndpoint, "In proxyCommand, a percent sign must be part of %h, %p, %r or %%.")
            }
        }
        return command + rest
    }

    /// Checks a command without running it.
    ///
    /// - Throws: A `TransferError` for an unknown token, and for a host or user that is unsafe in a command.
    static func check(_ template: String, _ address: SFTPAddress) throws(TransferError) { _ = try command(template, address) }

    private static func isHarmless(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
        default: "._-:@+".utf8.contains(byte)
        }
    }
}
