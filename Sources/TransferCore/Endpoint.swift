public import Foundation

/// An address that an account's sessions can be sent to, and the transport that speaks there.
///
/// An endpoint is persisted. It therefore names its credentials (see ``CredentialReference``) and never carries them.
public struct Endpoint: Hashable, Sendable, Codable {
    /// The transport that serves this endpoint.
    public var transport: TransportID

    /// A URL in the transport's own scheme. Its path is the folder that remote names are relative to.
    public var address: String

    /// Where the secrets for this endpoint come from, read each time a connection needs them.
    public var credentials: [CredentialReference]

    /// What the transport alone understands, for example additional headers; the keys are documented by the transport.
    public var settings: [String: String]

    /// Makes an endpoint; ``validate()`` tells whether its address makes sense.
    public init(
        transport: TransportID, address: String, credentials: [CredentialReference] = [], settings: [String: String] = [:]
    ) {
        self.transport = transport
        self.address = address
        self.credentials = credentials
        self.settings = settings
    }

    /// The address without its query, which may hold a secret: for messages and logs.
    public var location: String { String(address.prefix { $0 != "?" }) }

    /// Checks what holds for every transport: the address is a URL with a scheme and a host, and without a password or a fragment.
    ///
    /// Called by the queue when an account is saved, on the caller's executor.
    ///
    /// - Returns: The parsed address.
    /// - Throws: A ``TransferError`` of the class ``FailureClass/permanent`` and the code ``TransferError/Code/invalidEndpoint``.
    @discardableResult
    public func validate() throws(TransferError) -> URL {
        // The address may hold the very password that it is refused for, so no message repeats it whole.
        guard let components = URLComponents(string: address), let url = components.url else {
            throw .invalidEndpoint("The endpoint address is not a URL; write it as scheme://host/folder/.")
        }
        guard let scheme = components.scheme, !scheme.isEmpty else {
            throw .invalidEndpoint("The endpoint address has no scheme; write it as scheme://host/folder/.")
        }
        guard components.password == nil else {
            throw .invalidEndpoint("The endpoint address for \(components.host ?? "a host") carries a password; name a credential instead.")
        }
        guard let host = components.host, !host.isEmpty else {
            throw .invalidEndpoint("The endpoint address with the scheme \(scheme) has no host; write it as \(scheme)://host/folder/.")
        }
        if let port = components.port, !(1...65_535).contains(port) {
            throw .invalidEndpoint("The endpoint address for \(host) has the port \(port); ports go from 1 to 65535.")
        }
        guard components.fragment == nil else {
            throw .invalidEndpoint("The endpoint address for \(host) ends in a fragment (#…), which no server sees; remove it.")
        }
        return url
    }
}
