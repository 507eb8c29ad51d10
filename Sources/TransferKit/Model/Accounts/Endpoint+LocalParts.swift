import TransferCore

extension TransportID {
    /// The reserved transport ID of part files on this machine, in checkpoints and in the list of pending removals; see ``LocalParts``.
    static let localParts: TransportID = "transferkit-parts"
}

extension Endpoint {
    private static let localPartScheme = "part:"

    /// The stand-in endpoint under which the store lists the part file of a download from an endpoint.
    static func localPart(of endpoint: Endpoint) -> Endpoint {
        Endpoint(transport: .localParts, address: localPartScheme + endpoint.address)
    }

    /// The stand-in endpoint for an address in a checkpoint; nil for the address of a server.
    static func localPart(at address: String) -> Endpoint? {
        address.hasPrefix(localPartScheme) ? Endpoint(transport: .localParts, address: address) : nil
    }
}
