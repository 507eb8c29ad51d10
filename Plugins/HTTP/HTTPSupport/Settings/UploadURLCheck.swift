import Foundation
package import TransferCore

/// Checks the URLs that a session uploads to instead of its endpoint's address.
package enum UploadURLCheck {
    /// Rejects a URL that has a user name, password, fragment or invalid port, or that is not an `http` or `https` URL with a host.
    ///
    /// - Parameters:
    ///   - text: The URL.
    ///   - name: The name of the URL in errors.
    /// - Throws: A ``TransferError`` that contains only the scheme, host and port of the URL, because its path and query may be secret.
    package static func check(_ text: String, as name: String = "upload URL") throws(TransferError) {
        func refused(_ what: String) -> TransferError {
            TransferError(.permanent, .invalidUploadURL, "The file's \(name) \(what); write it as https://host/path.")
        }
        guard let url = URL(string: text, encodingInvalidCharacters: false),
            let components = URLComponents(url: url, resolvingAgainstBaseURL: false)
        else { throw refused("is not a URL") }
        guard let scheme = components.scheme else { throw refused("has no scheme") }
        let host = components.host ?? ""
        let shown = "\(scheme)://\(host)\(components.port.map { ":\($0)" } ?? "")"
        guard ["http", "https"].contains(scheme.lowercased()) else {
            throw refused("\(shown.debugDescription) has the scheme \(scheme), which is not http or https")
        }
        guard !host.isEmpty else { throw refused("\(shown.debugDescription) has no host") }
        if let port = components.port, !(1...65_535).contains(port) {
            throw refused("\(shown.debugDescription) has an invalid port; ports range from 1 to 65535")
        }
        guard components.user == nil, components.password == nil else {
            throw refused("for \(shown.debugDescription) contains a user name or a password; add a credential to the endpoint instead")
        }
        guard components.fragment == nil else {
            throw refused("for \(shown.debugDescription) ends with a fragment (#…), which is not sent to servers")
        }
    }
}
