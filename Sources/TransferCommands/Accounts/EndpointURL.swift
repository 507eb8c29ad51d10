import Foundation
import TransferCore

enum EndpointURL {
    /// Creates an endpoint from its URL. The URL's scheme selects the transport.
    ///
    /// - Throws: A `CommandFailure` if the URL is invalid, has an unknown scheme, or contains a password. The message does not repeat the
    ///   URL, because it may contain a secret.
    static func endpoint(_ text: String, among transports: RegisteredTransports) throws(CommandFailure) -> Endpoint {
        let advice = "Use one of \(transports.schemes.map { "\($0)://" }.joined(separator: ", "))."
        guard ProcessArguments.isText(text), let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else {
            throw CommandFailure(.usage, "An endpoint is a URL such as https://host/files/. \(advice)")
        }
        let scheme = text[..<colon].lowercased()
        guard let match = transports.all.lazy.compactMap({ transport in transport.schemes[scheme].map { (transport, $0) } }).first else {
            throw CommandFailure(.usage, "An endpoint has an unknown scheme. \(advice)")
        }
        let endpoint = Endpoint(
            transport: match.0.id, address: match.1 + String(text[colon...]), settings: match.0.schemeSettings[scheme] ?? [:])
        if let components = URLComponents(string: endpoint.address), components.password != nil {
            throw CommandFailure(
                .usage,
                "The endpoint URL for \(components.host ?? "a host") contains a password. Omit it, and name its source: --password-env VARIABLE or --password-file FILE."
            )
        }
        do {
            try endpoint.validate()
        } catch {
            throw CommandFailure(.usage, error.message)
        }
        return endpoint
    }
}
