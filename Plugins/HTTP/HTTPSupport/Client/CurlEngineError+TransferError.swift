package import CurlEngine
package import TransferCore

extension CurlEngineError {
    /// Whether the request can't have reached the server, so that there is no use in asking it what became of it.
    package var neverArrived: Bool {
        [
            .invalidRequest, .hostNotFound, .refused, .timedOut, .tlsNotTrusted, .tlsFailed, .certificateFileUnusable,
            .clientCertificateUnusable, .proxyRefused, .shutDown,
        ].contains(
            kind)
    }

    /// The queue's terms for a request without an answer.
    ///
    /// - Parameters:
    ///   - connection: How the origin is reached, which is named where that may be at fault.
    ///   - isEndpoint: Whether the endpoint itself was asked, so that what does not speak HTTP there is not what was meant.
    package func transferError(at origin: Origin, by connection: ConnectionSettings, isEndpoint: Bool) -> TransferError {
        var failure = transferError(at: origin, isEndpoint: isEndpoint)
        let isOfTheWay = [.hostNotFound, .refused, .timedOut, .tlsFailed, .badAnswer].contains(kind)
        if isOfTheWay, let way = connection.way { failure.message += " By the account's settings it is reached \(way); look at that, too." }
        return failure
    }

    private func transferError(at origin: Origin, isEndpoint: Bool) -> TransferError {
        switch kind {
        case .hostNotFound where unresolvedProxy != nil:
            error(
                .unreachable, .hostNotFound,
                "The name of the proxy \(unresolvedProxy ?? ""), which leads to \(origin), can't be resolved; \(Self.proxyAdvice)")
        case .refused where otherAddress(than: origin) != nil:
            error(
                .unreachable, .connectionRefused,
                "\(otherAddress(than: origin) ?? "") can't be reached, where requests to \(origin) are led: a proxy, or the target of a redirect. If it is a proxy, \(Self.proxyAdvice)"
            )
        case .hostNotFound: error(.unreachable, .hostNotFound, "The name of \(origin) can't be resolved; check the address.")
        case .refused: error(.unreachable, .connectionRefused, "\(origin) can't be reached.")
        case .timedOut: error(.unreachable, .timedOut, "\(origin) did not take the connection in time.")
        case .tlsFailed where isAnsweredWithoutTLS:
            error(
                .unreachable, .notThisProtocol,
                "What answers at \(origin) does not speak TLS; if it is a server without TLS, write http in place of https in the address, and otherwise check the port."
            )
        case .tlsFailed: error(.unreachable, .notThisProtocol, "No TLS connection could be agreed on with \(origin).")
        case .tlsNotTrusted where isOtherKey:
            error(
                .trust, .serverNotTrusted,
                "The certificate of \(origin) has none of the keys that the setting pinnedPublicKeys names; if it is the right one, add its key there."
            )
        case .tlsNotTrusted:
            error(
                .trust, .serverNotTrusted,
                "The certificate of \(origin) is not trusted, or is for another name. If it is the right one, name the file with its issuer's certificate, or with itself where it is its own issuer, in the setting caFile (transferq: --ca-file); a key in pinnedPublicKeys makes nobody trusted by itself."
            )
        case .certificateFileUnusable:
            error(.trust, .serverNotTrusted, "The setting caFile of \(origin) names no usable file of certificates.")
        case .clientCertificateUnusable:
            error(
                .credentials, .credentialsRejected,
                "The client certificate for \(origin) can't be used; look at the settings clientCertificate and clientKey.")
        case .proxyRefused where proxyStatus == 407:
            error(.credentials, .credentialsRejected, "\(message) It wants credentials for requests to \(origin), or other ones.")
        case .proxyRefused: error(.unreachable, .connectionRefused, "The proxy does not let requests to \(origin) through: \(message)")
        case .badAnswer where isEndpoint && origin.scheme == "http":
            error(
                .unreachable, .notThisProtocol,
                "What \(origin) answers is not HTTP; if it is a port for TLS, write https in place of http in the address, and otherwise check the port."
            )
        case .badAnswer where isEndpoint:
            error(.unreachable, .notThisProtocol, "What \(origin) answers is not HTTP; check the address.")
        case .badAnswer: error(.protocolViolation, .badAnswer, "What \(origin) answers is not HTTP.")
        case .invalidRequest: error(.permanent, .invalidEndpoint, message)
        case .outOfResources: error(.noSpace, .internalFailure, message)
        case .outcomeUnknown:
            error(.transient, .connectionLost, "The connection to \(origin) broke; whether it acted on the last request is not known.")
        case .expectationRefused:
            error(.transient, .rejected, "\(origin) refuses to be asked before it is sent a body; it is not asked any more.")
        case .shutDown: error(.transient, .connectionLost, message)
        default: error(.transient, .connectionLost, "The connection to \(origin) broke.")
        }
    }

    private static let proxyAdvice = "check the setting proxy, or the variables of the environment that name a proxy."

    /// The proxy whose name has no address, by libcurl's words.
    private var unresolvedProxy: Substring? { cause?.firstMatch(of: /Could not resolve proxy: (\S+)/)?.1 }

    /// The host and port that took no connection, by libcurl's words, if they are not the origin's own: those of a proxy, or behind a redirect.
    private func otherAddress(than origin: Origin) -> String? {
        guard let (host, port) = unreachableAddress, !origin.isProbably(host: host, port: port) else { return nil }
        return "\(host):\(port)"
    }

    /// Whether it is the origin itself that took no connection, and not something before it.
    package func isRefused(by origin: Origin) -> Bool {
        guard kind == .refused, let (host, port) = unreachableAddress else { return false }
        return origin.isProbably(host: host, port: port)
    }

    private var unreachableAddress: (host: Substring, port: Substring)? {
        cause?.firstMatch(of: /Failed to connect to (\S+) port ([0-9]+)/).map { ($0.1, $0.2) }
    }

    /// Whether libcurl's words are those for a certificate with another key than the pinned ones.
    private var isOtherKey: Bool { cause?.contains("pinned public key") == true }

    /// Whether OpenSSL's words are those for an answer that is no record of TLS, as from a server that speaks plain HTTP.
    private var isAnsweredWithoutTLS: Bool {
        ["wrong version number", "packet length too long", "http request", "unknown protocol"].contains { cause?.contains($0) == true }
    }

    private func error(_ failureClass: FailureClass, _ code: TransferError.Code, _ message: String) -> TransferError {
        TransferError(failureClass, code, message, cause: cause)
    }
}

extension Origin {
    /// Whether these are its host and port as libcurl writes them: without a dot at the end, and in ASCII.
    fileprivate func isProbably(host other: Substring, port otherPort: Substring) -> Bool {
        guard String(port) == otherPort else { return false }
        let own = host.hasSuffix(".") ? String(host.dropLast()) : host
        return own == other.lowercased() || other.hasPrefix("xn--") || own.contains("%")
    }
}
