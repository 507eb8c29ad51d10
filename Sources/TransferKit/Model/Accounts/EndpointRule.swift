public import TransferCore

/// A rule that changes the order of an account's endpoints for files of a given direction, size, or both.
///
/// The first matching rule of an account applies to a file. The queue tries the rule's endpoints first, in the rule's order, and then the account's
/// other endpoints. A rule never moves a file away from an endpoint that has bytes of the file.
public struct EndpointRule: Hashable, Sendable, Codable {
    /// The direction of matching sessions; nil for both directions.
    public var direction: TransferDirection?

    /// The smallest size of a matching file, in bytes, at least 0; nil for no minimum. A file of unknown size, such as a stream without a
    /// length or a download before its first attempt, matches only rules without sizes.
    public var minimumSize: Int64?

    /// The largest size of a matching file, in bytes, at least ``minimumSize``; nil for no maximum.
    public var maximumSize: Int64?

    /// The addresses of preferred endpoints of the account, the most preferred endpoint first: at least one address, without duplicates.
    public var addresses: [String]

    /// Creates a rule. The rule is checked when its account is saved.
    public init(
        direction: TransferDirection? = nil, minimumSize: Int64? = nil, maximumSize: Int64? = nil, prefer addresses: [String]
    ) {
        self.direction = direction
        self.minimumSize = minimumSize
        self.maximumSize = maximumSize
        self.addresses = addresses
    }

    func fits(_ direction: TransferDirection, size: Int64?) -> Bool {
        guard self.direction.map({ $0 == direction }) ?? true else { return false }
        guard minimumSize != nil || maximumSize != nil else { return true }
        guard let size else { return false }
        return size >= minimumSize ?? 0 && size <= maximumSize ?? .max
    }

    func sorted(_ endpoints: [Endpoint]) -> [Endpoint] {
        let preferred = addresses.compactMap { address in endpoints.first { $0.address == address } }
        return preferred + endpoints.filter { !addresses.contains($0.address) }
    }

    func validate(in account: Account) throws(QueueError) {
        guard !addresses.isEmpty, Set(addresses).count == addresses.count else {
            throw QueueError(.invalidAccount, "A rule of the account \"\(account.name)\" has no address, or the same address twice.")
        }
        guard addresses.allSatisfy({ address in account.endpoints.contains { $0.address == address } }) else {
            throw QueueError(
                .invalidAccount, "A rule of the account \"\(account.name)\" has an address that none of the account's endpoints has.")
        }
        guard minimumSize ?? 0 >= 0, minimumSize ?? 0 <= maximumSize ?? .max else {
            throw QueueError(
                .invalidAccount, "A rule of the account \"\(account.name)\" has a minimum size that is negative or above the maximum.")
        }
    }
}
