import TransferCore

extension TransportID {
    /// The transport ID of part files on this machine, in checkpoints and in the discard outbox. There is no such transport; see ``LocalParts``.
    static let localParts: TransportID = "transferkit-parts"
}

extension Endpoint {
    private static let localPartScheme = "part:"

    /// The stand-in endpoint under which the store records the part file of a download from an endpoint.
    static func localPart(of endpoint: Endpoint) -> Endpoint {
        Endpoint(transport: .localParts, address: localPartScheme + endpoint.address)
    }

    /// The stand-in endpoint for the address in a checkpoint; nil if the address is that of a server.
    static func localPart(at address: String) -> Endpoint? {
        address.hasPrefix(localPartScheme) ? Endpoint(transport: .localParts, address: address) : nil
    }
}
