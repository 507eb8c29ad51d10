import TransferCore

extension Endpoint {
    /// The address for people and scripts. A query may be a signature or a token, and no secret is ever printed.
    var shownAddress: String { location == address ? address : location + "?…" }
}
