package import CurlEngine
package import TransferCore

extension CurlEngineError {
    /// Whether the server can't have received the whole request. False for `shutDown`, because the request may have been sent before the
    /// shutdown.
    package var cannotHaveArrived: Bool {
        [
            .invalidRequest, .hostNotFound, .refused, .timedOut, .tlsNotTrusted, .tlsFailed, .certificateFileUnusable,
            .clientCertificateUnusable, .proxyRefused,
        ].contains(kind)
    }

    /// Converts this error to a `TransferError` whose message names the origin.
    ///
    /// - Parameters:
    ///   - network: The endpoint's network options. The message names the options that may be the cause.
    ///   - isEndpoint: Whether the request went to the endpoint's address. If so, a response that is not HTTP means that the address is wrong.
    package func transferError(at origin: Origin, by network: NetworkOptions, isEndpoint: Bool) -> TransferError {
        var failure = transferError(at: origin, isEndpoint: isEndpoint)
        let routeMayBeCause = isUnanswered || [.hostNotFound, .refused, .timedOut, .tlsFailed, .invalidResponse].contains(kind)
        if routeMayBeCause, let route = network.route {
            failure.message += " The account is configured to connect \(route); check this configuration too."
        }
        return failure
    }

    private func transferError(at origin: Origin, isEndpoint: Bool) -> TransferError {
        switch kind {
        case .hostNotFound where unresolvedProxy != nil:
            error(
                .unreachable, .hostNotFound,
                "Cannot resolve the host name of the proxy \(unresolvedProxy ?? "") for \(origin). Check \(Self.proxySources)")
        case .refused where otherAddress(than: origin) != nil:
            error(
                .unreachable, .connectionRefused,
                "Cannot reach \(otherAddress(than: origin) ?? ""), which is a proxy for \(origin) or the target of a redirect. For a proxy, check \(Self.proxySources)"
            )
        case .hostNotFound: error(.unreachable, .hostNotFound, "Cannot resolve the host name of \(origin). Check the address.")
        case .refused: error(.unreachable, .connectionRefused, "Cannot reach \(origin).")
        case .timedOut: error(.unreachable, .timedOut, "\(origin) did not accept the connection in time.")
        case .tlsFailed where isResponseWithoutTLS:
            error(
                .unreachable, .notThisProtocol,
                "The server at \(origin) did not respond with TLS. If it serves plain HTTP, change https to http in the address; otherwise check the port."
            )
        case .tlsFailed where isUnanswered:
            error(
                .unreachable, .connectionLost,
                "\(origin) closed the connection during the TLS handshake. Either the port does not use TLS, or a proxy is accepting connections for a server that is down."
            )
        case .tlsFailed: error(.unreachable, .notThisProtocol, "The TLS handshake with \(origin) failed.")
        case .tlsNotTrusted where isUnpinnedKey:
            error(
                .trust, .serverNotTrusted,
                "The certificate of \(origin) has a public key that is not in pinnedPublicKeys. If the certificate is correct, add its key to that setting."
            )
        case .tlsNotTrusted:
            error(
                .trust, .serverNotTrusted,
                "The certificate of \(origin) is not trusted, or does not match the host name. If you trust it, set caFile (transferq: --ca-file) to a file with its issuer's certificate, or with the certificate itself if it is self-signed. Pinning a key in pinnedPublicKeys does not make a certificate trusted."
            )
        case .certificateFileUnusable:
            error(.trust, .serverNotTrusted, "The caFile for \(origin) contains no usable certificates.")
        case .clientCertificateUnusable:
            error(
                .credentials, .credentialsRejected,
                "The client certificate for \(origin) can't be used; check the settings clientCertificate and clientKey.")
        case .proxyRefused where proxyStatus == 407:
            error(
                .credentials, .credentialsRejected,
                "\(message) The proxy requires credentials for requests to \(origin), or rejected the credentials that it received. "
                    + "Check proxyUser and the proxy's password, or the proxy environment variables.")
        case .proxyRefused: error(.unreachable, .connectionRefused, "Cannot connect to \(origin). \(message)")
        case .invalidResponse where isEndpoint && origin.scheme == "http":
            error(
                .unreachable, .notThisProtocol,
                "\(origin) does not speak HTTP. If the port uses TLS, change http to https in the address; otherwise check the port."
            )
        case .invalidResponse where isEndpoint:
            error(.unreachable, .notThisProtocol, "\(origin) does not speak HTTP; check the address.")
        case .invalidResponse: error(.protocolViolation, .invalidResponse, "\(origin) does not speak HTTP.")
        case .invalidRequest: error(.permanent, .invalidEndpoint, message)
        case .outOfResources: error(.noSpace, .internalFailure, message)
        // Not `unreachable`: the server may have acted on the request, so a form, for example, must not go to another endpoint immediately.
        case .connectionLost where isUnanswered:
            error(.transient, .serverUnavailable, "\(origin) closed the connection without a response.\(hint(at: origin, isEndpoint))")
        case .outcomeUnknown:
            error(
                .transient, .connectionLost,
                "The connection to \(origin) broke. It is unknown whether the server acted on the last request.")
        case .expectationRefused:
            error(.transient, .rejected, "\(origin) rejects \"Expect: 100-continue\". Later requests omit it.")
        case .shutDown: error(.transient, .connectionLost, message)
        default: error(.transient, .connectionLost, "The connection to \(origin) broke.")
        }
    }

    private func hint(at origin: Origin, _ isEndpoint: Bool) -> String {
        let scheme = isEndpoint && origin.scheme == "http" ? " If the port uses TLS, change http to https in the address." : ""
        return " A proxy may be accepting connections for a server that is down.\(scheme)"
    }

    /// The end of a message about a proxy: the possible sources of its address.
    private static let proxySources = "the \"proxy\" setting or the proxy environment variables."

    /// The proxy whose name libcurl could not resolve.
    private var unresolvedProxy: Substring? { cause?.firstMatch(of: /Could not resolve proxy: (\S+)/)?.1 }

    /// The host and port that libcurl could not connect to, if they differ from the origin's. In this case, they belong to a proxy or to the
    /// target of a redirect.
    private func otherAddress(than origin: Origin) -> String? {
        guard let (host, port) = unreachableAddress, !origin.isProbably(host: host, port: port) else { return nil }
        return "\(host):\(port)"
    }

    /// Returns whether the origin itself, not a proxy, refused the connection.
    package func isRefused(by origin: Origin) -> Bool {
        guard kind == .refused, let (host, port) = unreachableAddress else { return false }
        return origin.isProbably(host: host, port: port)
    }

    private var unreachableAddress: (host: Substring, port: Substring)? {
        cause?.firstMatch(of: /Failed to connect to (\S+) port ([0-9]+)/).map { ($0.1, $0.2) }
    }

    /// Whether libcurl reports that the certificate's key is not one of the pinned keys.
    private var isUnpinnedKey: Bool { cause?.contains("pinned public key") == true }

    /// Whether OpenSSL reports a response that is not TLS, for example from a plain HTTP server.
    private var isResponseWithoutTLS: Bool {
        ["wrong version number", "packet length too long", "http request", "unknown protocol"].contains { cause?.contains($0) == true }
    }

    private func error(_ failureClass: FailureClass, _ code: TransferError.Code, _ message: String) -> TransferError {
        TransferError(failureClass, code, message, cause: cause)
    }
}

extension Origin {
    /// Returns whether a host and port from a libcurl message could be this origin's. libcurl writes hosts in ASCII and without a
    /// trailing dot. A host with non-ASCII characters always counts as equal: libcurl writes it as `xn--…`, whereas the origin
    /// percent-encodes it.
    fileprivate func isProbably(host other: Substring, port otherPort: Substring) -> Bool {
        guard String(port) == otherPort else { return false }
        let own = host.hasSuffix(".") ? String(host.dropLast()) : host
        return own == other.lowercased() || other.hasPrefix("xn--") || own.contains("%")
    }
}
