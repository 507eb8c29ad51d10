public import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension CurlEngine {
    /// Connects to a server and hands the connection over, without a byte of any protocol on it.
    ///
    /// Names are looked up, and IPv6 and IPv4 tried side by side (RFC 8305). An HTTP proxy is asked by CONNECT to let everything through. Of the
    /// environment, `ALL_PROXY` and `NO_PROXY` count, as the other variables are for protocols by name. Cancelling the task returns at once.
    ///
    /// - Parameters:
    ///   - host: A name or an IP address, IPv6 without brackets.
    ///   - port: The TCP port.
    ///   - options: Those that TLS and HTTP with the server are about have no effect.
    /// - Returns: A connected TCP socket in non-blocking mode, which the caller closes.
    /// - Throws: A ``CurlEngineError`` or `CancellationError`.
    public func connect(host: String, port: UInt16, options: ConnectionOptions = ConnectionOptions()) async throws -> FileDescriptor {
        var options = options
        if case .environment = options.proxy.choice { options.proxy = Self.environmentProxy }
        if options.proxy.url?.lowercased().hasPrefix("https:") == true {
            throw CurlEngineError(.invalidRequest, "A plain connection can't be made through an https proxy; name an http or socks5h one.")
        }
        guard !host.isEmpty, host.utf8.allSatisfy(isHostByte) else {
            throw CurlEngineError(.invalidRequest, "The host \(host.debugDescription) is neither a name nor an IP address.")
        }
        let request = HTTPRequest(
            method: "CONNECT", url: "http://\(host.contains(":") ? "[\(host)]" : host):\(port)", connection: options)
        return try await run(request, .socket, pacing: nil, progress: nil).socket
    }

    /// libcurl would take the variable that is for HTTP, as it knows no other protocol here.
    private static var environmentProxy: Proxy {
        for name in ["all_proxy", "ALL_PROXY"] {
            if let value = unsafe getenv(name), unsafe value.pointee != 0 {
                return Proxy(choice: .variable(unsafe String(cString: value)))
            }
        }
        return .direct
    }
}

extension Proxy {
    fileprivate var url: String? {
        switch choice {
        case .environment, .direct: nil
        case .url(let url), .variable(let url): url
        }
    }
}

/// Bytes of names, of IP addresses, and of the zone of an IPv6 one (RFC 6874).
private func isHostByte(_ byte: UInt8) -> Bool {
    byte > 0x20 && byte != 0x7F && !"/?#@[]\\\"<>^`{|}".utf8.contains(byte)
}
