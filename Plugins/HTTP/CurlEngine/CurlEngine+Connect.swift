package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension CurlEngine {
    /// Connects to a server, and returns the socket before any bytes are sent to the server.
    ///
    /// Resolves names, and tries IPv6 and IPv4 in parallel (RFC 8305). Sends CONNECT to an HTTP proxy. Reads only the proxy environment
    /// variables `ALL_PROXY` and `NO_PROXY`, in lower or upper case, because the other variables apply to specific protocols. When
    /// the task is cancelled, throws immediately.
    ///
    /// - Parameters:
    ///   - host: A name or an IP address. An IPv6 address has no brackets.
    ///   - port: The TCP port.
    ///   - options: The connection options. The options for TLS and HTTP between this machine and the server have no effect.
    /// - Returns: A connected TCP socket in non-blocking mode. The caller must close it.
    /// - Throws: A ``CurlEngineError`` or `CancellationError`.
    package func connect(host: String, port: UInt16, options: ConnectionOptions = ConnectionOptions()) async throws -> FileDescriptor {
        var options = options
        if case .environment = options.proxy.choice { options.proxy = Self.environmentProxy }
        if options.proxy.url?.lowercased().hasPrefix("https:") == true {
            throw CurlEngineError(.invalidRequest, "An https proxy can't carry a plain connection; use an http or socks5h proxy.")
        }
        guard !host.isEmpty, host.utf8.allSatisfy(isHostByte) else {
            throw CurlEngineError(.invalidRequest, "The host \(host.debugDescription) is not a name or an IP address.")
        }
        let request = HTTPRequest(
            method: "CONNECT", url: "http://\(host.contains(":") ? "[\(host)]" : host):\(port)", connection: options)
        return try await run(request, .socket, pacing: nil, progress: nil).socket
    }

    /// The proxy from `all_proxy` or `ALL_PROXY`; no proxy if neither is set. libcurl itself would choose `http_proxy`, because it treats
    /// the connection as an HTTP request.
    private static var environmentProxy: Proxy {
        for name in ["all_proxy", "ALL_PROXY"] {
            if let value = unsafe getenv(name), unsafe value.pointee != 0 {
                return Proxy(choice: .variableValue(unsafe String(cString: value)))
            }
        }
        return .direct
    }
}

extension Proxy {
    fileprivate var url: String? {
        switch choice {
        case .environment, .direct: nil
        case .url(let url), .variableValue(let url): url
        }
    }
}

/// Returns whether a byte can occur in names, IP addresses, and the zone of an IPv6 address (RFC 6874).
private func isHostByte(_ byte: UInt8) -> Bool {
    byte > 0x20 && byte != 0x7F && !"/?#@[]\\\"<>^`{|}".utf8.contains(byte)
}
