import TransferCore

extension TransportID {
    /// The reserved transport ID of part files on this machine, in checkpoints and in the list of pending removals; see ``LocalPartFiles``.
    static let localPartFiles: TransportID = "transferkit-parts"
}

extension Endpoint {
    private static let localPartScheme = "part:"

    /// The stand-in endpoint under which the database lists the part file of a download from an endpoint.
    static func localPartFile(of endpoint: Endpoint) -> Endpoint {
        Endpoint(transport: .localPartFiles, address: localPartScheme + endpoint.address)
    }

    /// The stand-in endpoint for an address in a checkpoint; nil for the address of a server.
    static func localPartFile(at address: String) -> Endpoint? {
        address.hasPrefix(localPartScheme) ? Endpoint(transport: .localPartFiles, address: address) : nil
    }
}
