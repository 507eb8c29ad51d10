public import TransferCore

/// A named remote identity: where its sessions go, in order of preference, and with which credentials.
public struct Account: Hashable, Sendable, Codable {
    /// The name that sessions refer to; unique in a queue.
    public var name: String

    /// Where sessions may go, the preferred one first.
    public var endpoints: [Endpoint]

    /// Makes an account; it is checked when it is saved.
    public init(_ name: String, endpoints: [Endpoint]) {
        self.name = name
        self.endpoints = endpoints
    }

    func validate() throws(QueueError) {
        guard !name.isEmpty, name.utf8.count <= 255, !name.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw QueueError(.invalidAccount, "An account's name has 1 to 255 bytes and no control characters.")
        }
        guard !endpoints.isEmpty else {
            throw QueueError(.invalidAccount, "The account \"\(name)\" has no endpoint; give at least one.")
        }
        for endpoint in endpoints {
            do {
                try endpoint.validate()
            } catch {
                throw QueueError(.invalidAccount, "The account \"\(name)\" can't be saved. \(error.message)")
            }
        }
    }
}

/// Why no session of an account starts until a person acts.
public struct AccountBlock: Hashable, Sendable, Codable {
    /// What a transport met: of the class `credentials` or `trust`.
    public var error: TransferError

    /// Makes a block.
    public init(error: TransferError) {
        self.error = error
    }
}

/// A snapshot of an account.
public struct AccountStatus: Hashable, Sendable {
    /// The account itself.
    public var account: Account
    /// Why none of its sessions starts; nil if it is not blocked.
    public var block: AccountBlock?
    /// How many sessions refer to it, in all states.
    public var sessions: Int
}
