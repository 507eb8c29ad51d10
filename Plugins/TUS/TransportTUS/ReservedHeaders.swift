import CurlEngine
import TransferCore

/// The headers that are the transport's own: with another value in one of them, what the server does is not what was asked.
enum ReservedHeaders {
    private static let names: Set<String> = [
        "content-length", "content-type", "host", "expect", "transfer-encoding", "connection", "trailer", "te", "x-http-method-override",
    ]
    private static let secrets: Set<String> = ["authorization", "proxy-authorization", "cookie"]

    static func contains(_ name: String) -> Bool {
        let name = name.lowercased()
        return names.contains(name) || name.hasPrefix("upload-") || name.hasPrefix("tus-")
    }

    /// Refuses a header of settings or options, which are stored: no secret belongs there.
    ///
    /// - Throws: A ``TransferError`` that names the header.
    static func check(_ name: String) throws(TransferError) {
        if secrets.contains(name.lowercased()) {
            throw TransferError(
                .permanent, .invalidEndpoint,
                "The header \(name) is a secret; name it as a credential of the endpoint, not as a setting.")
        }
        if contains(name) {
            throw TransferError(.permanent, .invalidEndpoint, "The header \(name) is the tus transport's own; remove the setting.")
        }
    }
}
