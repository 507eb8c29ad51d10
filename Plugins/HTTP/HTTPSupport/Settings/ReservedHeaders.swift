package import CurlEngine
package import TransferCore

/// The headers that only the transport may set, because other values would change the meaning of its requests.
package struct ReservedHeaders: Sendable {
    private static let common: Set<String> = [
        "content-length", "host", "expect", "transfer-encoding", "connection", "trailer", "te", "range", "if-range",
    ]
    /// The way in which an app or a user sets a header. It selects the text of messages.
    package enum Scope {
        /// In a setting of an endpoint or a session.
        case setting
        /// In a session's headers.
        case session
    }

    private static let secrets: Set<String> = ["authorization", "proxy-authorization", "cookie"]

    private let transport: TransportID
    private let names: Set<String>
    private let prefixes: [String]

    /// - Parameters:
    ///   - names: Additional names that only this transport reserves, in lower case.
    ///   - prefixes: Prefixes of additional reserved names, in lower case.
    package init(of transport: TransportID, names: Set<String> = [], prefixes: [String] = []) {
        self.transport = transport
        self.names = Self.common.union(names)
        self.prefixes = prefixes
    }

    /// Returns a copy that also reserves the given names, which must be in lower case.
    package func adding(_ names: Set<String>) -> ReservedHeaders {
        ReservedHeaders(of: transport, names: self.names.union(names), prefixes: prefixes)
    }

    /// Returns whether a header is reserved. The case of the name does not matter.
    package func contains(_ name: String) -> Bool {
        let name = name.lowercased()
        return names.contains(name) || prefixes.contains { name.hasPrefix($0) }
    }

    /// Rejects reserved headers. Also rejects headers with secrets, such as `Authorization`, because the queue stores settings and session
    /// headers.
    ///
    /// - Throws: A ``TransferError`` that names the header.
    package func check(_ name: String, in scope: Scope = .setting) throws(TransferError) {
        if Self.secrets.contains(name.lowercased()) {
            throw TransferError(
                .permanent, .invalidEndpoint,
                "The header \(name) is a secret; add it as a credential of the endpoint, not \(scope == .setting ? "as a setting" : "in a session")."
            )
        }
        if contains(name) {
            throw TransferError(
                .permanent, .invalidEndpoint,
                "The header \(name) is reserved by the \(transport) transport; remove the \(scope == .setting ? "setting" : "header").")
        }
    }

    /// Rejects the same headers as ``check(_:in:)``, and also invalid names and values (RFC 9110, sections 5.1 and 5.5).
    ///
    /// - Throws: A ``TransferError`` that names the header, but not its value.
    package func check(_ name: String, _ value: String, in scope: Scope = .setting) throws(TransferError) {
        let isName = !name.isEmpty && name.utf8.allSatisfy(Self.isHeaderNameByte)
        guard isName else {
            throw TransferError(
                .permanent, .invalidEndpoint,
                "\(name.debugDescription) is not a header name; use only letters, digits and hyphens.")
        }
        guard !value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw TransferError(
                .permanent, .invalidEndpoint,
                "The value of the header \(name) contains a line break or another control character; remove it.")
        }
        try check(name, in: scope)
    }

    /// Checks the headers that a session sets for each request, and returns them sorted by name.
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

    /// Returns whether a byte can occur in header names (RFC 9110, section 5.6.2).
    package static func isHeaderNameByte(_ byte: UInt8) -> Bool {
        let character = Character(UnicodeScalar(byte))
        return character.isASCII && (character.isLetter || character.isNumber || "!#$%&'*+-.^_`|~".contains(character))
    }

    func changedByHook(_ name: String) -> TransferError {
        TransferError(
            .permanent, .invalidHeader, "The app's header hook changed \(name), which is reserved by the \(transport) transport.")
    }

    /// Rejects a credential for a reserved header.
    ///
    /// - Throws: A ``TransferError`` that names the header.
    package func check(_ credentials: [CredentialReference]) throws(TransferError) {
        for case let name? in credentials.map(\.name) where contains(name) {
            throw TransferError(
                .permanent, .invalidEndpoint, "The header \(name) is reserved by the \(transport) transport; remove the credential for it.")
        }
    }
}
