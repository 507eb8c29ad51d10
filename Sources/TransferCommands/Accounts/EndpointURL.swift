import Foundation
import TransferCore

/// An endpoint as it is written on the command line.
enum EndpointURL {
    /// Finds the transport that a URL means.
    ///
    /// No message repeats the URL: it may hold the very password that it is refused for.
    static func endpoint(_ text: String, among transports: RegisteredTransports) throws(CommandFailure) -> Endpoint {
        let known = "known are \(transports.schemes.map { "\($0)://" }.joined(separator: ", "))"
        guard ProcessArguments.isText(text), let colon = text.firstIndex(of: ":"), text[colon...].hasPrefix("://") else {
            throw CommandFailure(.usage, "An endpoint is a URL such as https://host/files/; \(known).")
        }
        let scheme = text[..<colon].lowercased()
        guard let match = transports.all.lazy.compactMap({ entry in entry.schemes[scheme].map { (entry.id, $0) } }).first else {
            throw CommandFailure(.usage, "An endpoint's scheme is not known; \(known).")
        }
        let endpoint = Endpoint(transport: match.0, address: match.1 + String(text[colon...]))
        if let components = URLComponents(string: endpoint.address), components.password != nil {
            throw CommandFailure(
                .usage,
                "The endpoint URL for \(components.host ?? "a host") carries a password. Leave it out, and name where it is: --password-env VARIABLE or --password-file FILE."
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
