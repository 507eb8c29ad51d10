import CurlEngine
import TransferCore

/// An endpoint's settings, checked.
struct EndpointSettings {
    /// A file with certificates to trust instead of the system's.
    var certificateAuthorityFile: String?

    /// Headers to send with each request to the endpoint's origin.
    var headers = HTTPHeaders()

    /// - Throws: A ``TransferError`` that names the setting that makes no sense.
    init(_ settings: [String: String]) throws(TransferError) {
        for (key, value) in settings.sorted(by: { $0.key < $1.key }) {
            if key == "caFile" {
                certificateAuthorityFile = value
            } else if key.hasPrefix("header.") {
                let name = String(key.dropFirst("header.".count))
                try Self.check(name)
                headers.append(name, value)
            } else {
                throw Self.invalid("The setting \(key.debugDescription) is not known to the tus transport; use caFile or header.NAME.")
            }
        }
    }

    private static func check(_ name: String) throws(TransferError) {
        let name = name.lowercased()
        if name == "authorization" || name == "proxy-authorization" || name == "cookie" {
            throw invalid("The header \(name) is a secret; name it as a credential of the endpoint, not as a setting.")
        }
        let reserved = ["content-length", "content-type", "host", "expect", "transfer-encoding", "connection"]
        if reserved.contains(name) || name.hasPrefix("upload-") || name.hasPrefix("tus-") {
            throw invalid("The header \(name) is the tus transport's own; remove the setting.")
        }
    }

    private static func invalid(_ message: String) -> TransferError {
        TransferError(.permanent, .invalidEndpoint, message)
    }
}
