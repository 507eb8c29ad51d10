/// The direction of a transfer.
public enum TransferDirection: String, Hashable, Sendable, Codable {
    /// From this machine to the endpoint.
    case upload
    /// From the endpoint to this machine.
    case download
}
