package import CurlEngine
package import TransferCore

/// The headers that are a transport's own: with another value in one of them, what the server does is not what was asked.
package struct ReservedHeaders: Sendable {
    private static let common: Set<String> = [
        "content-length", "host", "expect", "transfer-encoding", "connection", "trailer", "te", "range", "if-range",
    ]
    /// Where a header is asked for.
    package enum Place {
        /// In a setting of an endpoint, or of a session.
        case setting
        /// Among a session's headers.
        case session
    }

    private static let secrets: Set<String> = ["authorization", "proxy-authorization", "cookie"]

    private let transport: TransportID
    private let names: Set<String>
    private let prefixes: [String]

    /// - Parameters:
    ///   - transport: Whose they are.
    ///   - names: Beside those that no request can do without, in lower case.
    ///   - prefixes: What further names begin with, in lower case.
    package init(of transport: TransportID, names: Set<String> = [], prefixes: [String] = []) {
        self.transport = transport
        self.names = Self.common.union(names)
        self.prefixes = prefixes
    }

    /// These and more names, in lower case.
    package func adding(_ names: Set<String>) -> ReservedHeaders {
        ReservedHeaders(of: transport, names: self.names.union(names), prefixes: prefixes)
    }

    package func contains(_ name: String) -> Bool {
        let name = name.lowercased()
        return names.contains(name) || prefixes.contains { name.hasPrefix($0) }
    }

    /// Refuses a header of settings or options, which are stored: no secret belongs there.
    ///
    /// - Throws: A ``TransferError`` that names the header.
    package func check(_ name: String, in place: Place = .setting) throws(TransferError) {
        if Self.secrets.contains(name.lowercased()) {
            throw TransferError(
                .permanent, .invalidEndpoint,
                "The header \(name) is a secret; name it as a credential of the endpoint, not \(place == .setting ? "as a setting" : "in a session")."
            )
        }
        if contains(name) {
            throw TransferError(
                .permanent, .invalidEndpoint,
                "The header \(name) is the \(transport) transport's own; remove the \(place == .setting ? "setting" : "header").")
        }
    }

    /// Refuses what ``check(_:in:)`` does, and what could be a second header or none (RFC 9110, sections 5.1 and 5.5).
    ///
    /// - Throws: A ``TransferError`` that names the header, and never its value.
    package func check(_ name: String, _ value: String, in place: Place = .setting) throws(TransferError) {
        let isName = !name.isEmpty && name.utf8.allSatisfy(Self.isOfNames)
        guard isName else {
            throw TransferError(
                .permanent, .invalidEndpoint,
                "\(name.debugDescription) can't be the name of a header; it has letters, digits and hyphens only.")
        }
        guard !value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw TransferError(
                .permanent, .invalidEndpoint, "The value of the header \(name) has a line break or another control character; remove it.")
        }
        try check(name, in: place)
    }

    /// Checks the headers that a session sets for each request.
    ///
    /// - Throws: A ``TransferError`` that names an invalid header.
    package func sessionHeaders(_ values: [String: String]) throws(TransferError) -> HTTPHeaders {
        var headers = HTTPHeaders()
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            try check(name, value, in: .session)
            headers.append(name, value)
        }
        return headers
    }

    /// Whether names of headers may have such a byte (RFC 9110, section 5.6.2).
    package static func isOfNames(_ byte: UInt8) -> Bool {
        let character = Character(UnicodeScalar(byte))
        return character.isASCII && (character.isLetter || character.isNumber || "!#$%&'*+-.^_`|~".contains(character))
    }

    /// The error for one that an app's hook changed.
    func changedByHook(_ name: String) -> TransferError {
        TransferError(
            .permanent, .invalidHeader, "The app's hook for headers changed \(name), which is the \(transport) transport's own.")
    }

    /// Refuses a credential of an endpoint that is for one of these headers.
    ///
    /// - Throws: A ``TransferError`` that names the header.
    package func check(_ credentials: [CredentialReference]) throws(TransferError) {
        for case let name? in credentials.map(\.name) where contains(name) {
            throw TransferError(
                .permanent, .invalidEndpoint, "The header \(name) is the \(transport) transport's own; remove the credential for it.")
        }
    }
}
