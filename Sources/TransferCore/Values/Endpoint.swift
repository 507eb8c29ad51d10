public import Foundation

/// One address of an account, with the transport to use there.
///
/// The queue stores endpoints. An endpoint therefore refers to credentials (see ``CredentialReference``) and never contains them.
public struct Endpoint: Hashable, Sendable, Codable {
    /// The transport of this endpoint.
    public var transport: TransportID

    /// A URL with one of the transport's schemes. Remote names are relative to the URL's path.
    public var address: String

    /// References to the secrets of this endpoint. Transports read the secrets whenever a connection needs them.
    public var credentials: [CredentialReference]

    /// Settings for the transport by name, for example additional headers. The queue does not interpret them. The transport documents the names, and
    /// can offer a type for its settings, such as `TUSOptions`.
    public var settings: [String: String]

    /// Creates an endpoint. ``validate()`` checks its address.
    public init(
        transport: TransportID, address: String, credentials: [CredentialReference] = [], settings: [String: String] = [:]
    ) {
        self.transport = transport
        self.address = address
        self.credentials = credentials
        self.settings = settings
    }

    /// The address as shown in messages and logs. Omits the query, which may contain a secret.
    public var location: String { String(address.prefix { $0 != "?" }) }

    /// Checks the rules that apply to all transports: the address is a URL with a scheme and a host, without a password or a fragment. A port must be
    /// from 1 to 65535.
    ///
    /// The queue calls this method when an account is saved or changed, on the caller's executor and on the queue's own executor.
    ///
    /// - Returns: The parsed address.
    /// - Throws: A ``TransferError`` of the class ``FailureClass/permanent`` with the code ``TransferError/Code/invalidEndpoint``.
    @discardableResult
    public func validate() throws(TransferError) -> URL {
        // The address may contain a password, so no message contains the complete address.
        guard let components = URLComponents(string: address), let url = components.url else {
            throw .invalidEndpoint("The endpoint address is not a URL. Use scheme://host/folder/.")
        }
        guard let scheme = components.scheme, !scheme.isEmpty else {
            throw .invalidEndpoint("The endpoint address has no scheme. Use scheme://host/folder/.")
        }
        guard components.password == nil else {
            throw .invalidEndpoint("The endpoint address for \(components.host ?? "a host") contains a password. Use a credential instead.")
        }
        guard let host = components.host, !host.isEmpty else {
            throw .invalidEndpoint("The endpoint address with the scheme \(scheme) has no host. Use \(scheme)://host/folder/.")
        }
        if let port = components.port, !(1...65_535).contains(port) {
            throw .invalidEndpoint("The endpoint address for \(host) has the invalid port \(port). Use 1 to 65535.")
        }
        guard components.fragment == nil else {
            throw .invalidEndpoint("The endpoint address for \(host) has a fragment (#…), which clients don't send. Remove it.")
        }
        return url
    }
}
