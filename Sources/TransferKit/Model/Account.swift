public import TransferCore

/// A named remote identity: where its sessions go, in order of preference, and with which credentials.
public struct Account: Hashable, Sendable, Codable {
    /// The name that sessions refer to; unique in a queue.
    public var name: String

    /// Where sessions may go, the preferred one first.
    public var endpoints: [Endpoint]

    /// How many of its sessions may be active at once, at least 1; nil for no limit of its own.
    public var sessionLimit: Int?

    /// Bytes per second for all of its sessions together; nil for no limit.
    public var rateLimit: Int64?

    /// How long a file with confirmed bytes at an endpoint that can't be reached stays with it, before it begins anew at the next endpoint.
    public var fallbackAfter: Duration

    /// Whether the next endpoint is tried when one refuses the credentials, rather than block the account.
    public var fallsBackOnCredentials: Bool

    /// Which files prefer other endpoints than the first; see ``EndpointRule``.
    public var rules: [EndpointRule]

    /// Makes an account; it is checked when it is saved.
    public init(
        _ name: String, endpoints: [Endpoint], sessionLimit: Int? = nil, rateLimit: Int64? = nil, fallbackAfter: Duration = .seconds(60),
        fallsBackOnCredentials: Bool = false, rules: [EndpointRule] = []
    ) {
        self.name = name
        self.endpoints = endpoints
        self.sessionLimit = sessionLimit
        self.rateLimit = rateLimit
        self.fallbackAfter = fallbackAfter
        self.fallsBackOnCredentials = fallsBackOnCredentials
        self.rules = rules
    }

    /// Decodes an account as any version wrote it: what an earlier one did not know has its default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            try container.decode(String.self, forKey: .name), endpoints: try container.decode([Endpoint].self, forKey: .endpoints),
            sessionLimit: try container.decodeIfPresent(Int.self, forKey: .sessionLimit),
            rateLimit: try container.decodeIfPresent(Int64.self, forKey: .rateLimit),
            fallbackAfter: try container.decodeIfPresent(Duration.self, forKey: .fallbackAfter) ?? .seconds(60),
            fallsBackOnCredentials: try container.decodeIfPresent(Bool.self, forKey: .fallsBackOnCredentials) ?? false,
            rules: try container.decodeIfPresent([EndpointRule].self, forKey: .rules) ?? [])
    }

    /// Whether nothing is different that a server could have refused.
    func isSameIdentity(as other: Account) -> Bool {
        name == other.name && endpoints == other.endpoints
    }

    func validate() throws(QueueError) {
        guard !name.isEmpty, name.utf8.count <= 255, !name.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw QueueError(.invalidAccount, "An account's name has 1 to 255 bytes and no control characters.")
        }
        guard !endpoints.isEmpty else {
            throw QueueError(.invalidAccount, "The account \"\(name)\" has no endpoint; give at least one.")
        }
        guard sessionLimit.map({ $0 >= 1 }) ?? true, rateLimit.map({ $0 >= 1 }) ?? true else {
            throw QueueError(.invalidAccount, "The limits of the account \"\(name)\" are at least 1; leave them out for none.")
        }
        guard (.zero ... .seconds(Int64.max)).contains(fallbackAfter) else {
            throw QueueError(.invalidAccount, "The time before the account \"\(name)\" falls back is 0 to \(Int64.max) s.")
        }
        guard Set(endpoints.map(\.address)).count == endpoints.count else {
            throw QueueError(.invalidAccount, "The account \"\(name)\" names an address twice; each of its endpoints has one of its own.")
        }
        for endpoint in endpoints {
            do {
                try endpoint.validate()
            } catch {
                throw QueueError(.invalidAccount, "The account \"\(name)\" can't be saved. \(error.message)")
            }
        }
        for rule in rules { try rule.validate(in: self) }
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
public struct AccountStatus: Hashable, Sendable, Codable {
    /// The account itself.
    public var account: Account
    /// Why none of its sessions starts; nil if it is not blocked.
    public var block: AccountBlock?
    /// How many sessions refer to it, in all states.
    public var sessions: Int
}
