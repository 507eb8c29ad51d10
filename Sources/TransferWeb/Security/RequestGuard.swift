import Foundation

/// Rejects requests that another web site could cause a browser to send.
struct RequestGuard: Sendable {
    /// The accepted host names in lower case, in addition to loopback names.
    private let names: Set<String>
    private let scheme: String

    /// - Parameters:
    ///   - names: The accepted host names, in addition to loopback names.
    ///   - isSecure: Whether the server uses TLS.
    init(names: [String], isSecure: Bool) {
        self.names = Set(names.map { Self.host($0.contains(":") && !$0.hasPrefix("[") ? "[\($0)]" : $0)?.lowercased() ?? $0 })
        scheme = isSecure ? "https" : "http"
    }

    func refusal(of request: WebRequest) -> Problem? {
        guard let authority = request.authority, let host = Self.host(authority)?.lowercased() else {
            return Problem(400, "invalidHost", "The request has no valid Host header.")
        }
        // Without this check, a web site could resolve its own name to this server's address, and its pages could use the server (DNS rebinding).
        guard names.contains(host) || Self.isLoopback(host) else {
            return Problem(
                421, "invalidHost", "This server does not serve the host \(host). To allow the name, start the server with --name.")
        }
        if let origin = request["Origin"], origin.lowercased() != "\(scheme)://\(authority)".lowercased() {
            return Problem(403, "foreignOrigin", "A page of another origin sent the request.")
        }
        // Browsers set Sec-Fetch-Site, and pages can't change this header (Fetch Metadata Request Headers, W3C).
        switch request["Sec-Fetch-Site"]?.lowercased() {
        case nil, "same-origin", "none": return nil
        default:
            // A link on another site may open the start page or the login page. The cookie is SameSite=Strict, so the browser omits it.
            let isLink = request.method == "GET" && request["Sec-Fetch-Mode"]?.lowercased() == "navigate"
            guard isLink, request.path == "/" || request.path == "/login" else {
                return Problem(403, "foreignOrigin", "A page of another site caused the request.")
            }
            return nil
        }
    }

    /// The host of an authority (RFC 3986, section 3.2), without the port; nil if the authority is invalid or contains user information.
    static func host(_ authority: String) -> String? {
        guard !authority.isEmpty, !authority.contains("@") else { return nil }
        let (host, rest): (Substring, Substring)
        if authority.hasPrefix("[") {
            guard let end = authority.firstIndex(of: "]") else { return nil }
            (host, rest) = (authority[...end], authority[authority.index(after: end)...])
        } else {
            let end = authority.firstIndex(of: ":") ?? authority.endIndex
            (host, rest) = (authority[..<end], authority[end...])
        }
        guard !host.isEmpty, rest.isEmpty || rest.hasPrefix(":") && UInt16(rest.dropFirst()) != nil else { return nil }
        return String(host)
    }

    /// Whether a host in lower case always means this machine (RFC 6761, section 6.3).
    static func isLoopback(_ host: String) -> Bool {
        if host == "localhost" || host == "[::1]" || host == "::1" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return numbers.count == 4 && numbers.first == 127 && !numbers.contains(nil)
    }
}
