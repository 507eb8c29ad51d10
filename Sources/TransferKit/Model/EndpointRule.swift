public import TransferCore

/// Sends some files of an account to endpoints other than its first: by direction, by size, or both.
///
/// Of an account's rules the first that fits a file counts. The endpoints that it names go before the others, in its order; the others are
/// still there to fall back to. A file with confirmed bytes at an endpoint stays there, whatever the rules say meanwhile.
public struct EndpointRule: Hashable, Sendable, Codable {
    /// Which sessions it fits; nil for both directions.
    public var direction: TransferDirection?

    /// How many bytes a file has at least; nil for any number. A file whose size is not known yet, such as a download's or a stream's, fits
    /// only rules without sizes.
    public var minimumSize: Int64?

    /// How many bytes a file has at most; nil for any number.
    public var maximumSize: Int64?

    /// The addresses of endpoints of the account, the preferred one first; at least one.
    public var addresses: [String]

    /// Makes a rule; it is checked when its account is saved.
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

    /// These endpoints in the order in which a file that fits tries them.
    func sorted(_ endpoints: [Endpoint]) -> [Endpoint] {
        let preferred = addresses.compactMap { address in endpoints.first { $0.address == address } }
        return preferred + endpoints.filter { !addresses.contains($0.address) }
    }

    func validate(in account: Account) throws(QueueError) {
        guard !addresses.isEmpty, Set(addresses).count == addresses.count else {
            throw QueueError(.invalidAccount, "A rule of the account \"\(account.name)\" names no address, or one twice.")
        }
        guard addresses.allSatisfy({ address in account.endpoints.contains { $0.address == address } }) else {
            throw QueueError(.invalidAccount, "A rule of the account \"\(account.name)\" names an address that none of its endpoints has.")
        }
        guard minimumSize ?? 0 >= 0, minimumSize ?? 0 <= maximumSize ?? .max else {
            throw QueueError(.invalidAccount, "A rule of the account \"\(account.name)\" has sizes that no file fits.")
        }
    }
}
