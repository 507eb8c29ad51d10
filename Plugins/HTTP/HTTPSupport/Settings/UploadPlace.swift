import Foundation
package import TransferCore

/// The URL that a file is sent to in the place of its endpoint's address.
package enum UploadPlace {
    /// Refuses what no request can be sent to.
    ///
    /// - Throws: A ``TransferError`` that shows the URL's scheme and host only, as its path may be a capability.
    package static func check(_ text: String) throws(TransferError) {
        guard let url = URL(string: text, encodingInvalidCharacters: false),
            let components = URLComponents(url: url, resolvingAgainstBaseURL: false)
        else { throw refused("is not a URL") }
        guard let scheme = components.scheme else { throw refused("has no scheme") }
        let host = components.host ?? ""
        let shown = "\(scheme)://\(host)\(components.port.map { ":\($0)" } ?? "")"
        guard ["http", "https"].contains(scheme.lowercased()) else {
            throw refused("\(shown.debugDescription) is one of \(scheme), which files are not sent over")
        }
        guard !host.isEmpty else { throw refused("\(shown.debugDescription) has no host") }
        if let port = components.port, !(1...65_535).contains(port) {
            throw refused("\(shown.debugDescription) has a port that is none; ports go from 1 to 65535")
        }
        guard components.user == nil, components.password == nil else {
            throw refused("for \(shown.debugDescription) carries a user name or a password; name a credential of the endpoint instead")
        }
        guard components.fragment == nil else {
            throw refused("for \(shown.debugDescription) ends in a fragment (#…), which no server sees")
        }
    }

    private static func refused(_ what: String) -> TransferError {
        TransferError(.permanent, .invalidUploadURL, "The file's upload URL \(what); write it as https://host/path.")
    }
}
