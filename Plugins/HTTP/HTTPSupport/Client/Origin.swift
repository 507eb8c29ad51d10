package import Foundation

/// The scheme, host and port of a URL. Credentials belong to one origin (RFC 6454, section 4).
package struct Origin: Hashable, CustomStringConvertible {
    package let scheme: String
    /// The host in lower case, percent-encoded.
    package let host: String
    package let port: Int

    /// - Returns: nil if the URL is not an `http` or `https` URL with a host.
    package init?(_ url: URL) {
        guard let scheme = url.scheme?.lowercased(), let host = url.host(percentEncoded: true)?.lowercased(), !host.isEmpty else {
            return nil
        }
        switch scheme {
        case "https": port = url.port ?? 443
        case "http": port = url.port ?? 80
        default: return nil
        }
        self.scheme = scheme
        self.host = host
    }

    /// Whether the host is this machine, according to its address or its reserved name (RFC 6761, section 6.3).
    package var isLoopback: Bool {
        if host == "localhost" || host.hasSuffix(".localhost") || host == "[::1]" || host == "::1" { return true }
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false).map { UInt8($0) }
        return numbers.count == 4 && numbers.first == 127 && !numbers.contains(nil)
    }

    /// The text for error messages. It omits the path, which may be secret.
    package var description: String {
        let isUsual = scheme == "https" ? port == 443 : port == 80
        return isUsual ? "\(scheme)://\(host)" : "\(scheme)://\(host):\(port)"
    }
}
