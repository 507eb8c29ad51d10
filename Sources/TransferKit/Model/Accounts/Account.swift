public import Foundation
public import TransferCore

/// A named remote identity: its endpoints in order of preference, with references to their credentials.
public struct Account: Hashable, Sendable, Codable {
    /// The name that sessions refer to; unique in a queue.
    public var name: String

    /// The endpoints for sessions, in order of preference.
    public var endpoints: [Endpoint]

    /// The maximum number of active sessions of the account, at least 1; nil if only the limit of the queue applies.
    public var maxConcurrentSessions: Int?

    /// The rate limit of all sessions of the account together, in bytes per second, at least 1; nil for no limit.
    public var rateLimit: Int64?

    /// The rate limits that replace ``rateLimit`` at some times of the week; nil for none.
    public var timetable: BandwidthTimetable?

    /// The minimum time that a partly transferred file waits for its unreachable endpoint before it restarts at the next endpoint, at least 0 s.
    /// Default: 60 s.
    public var fallbackAfter: Duration

    /// Whether a session tries the next endpoint if an endpoint rejects the credentials. If false, or after the last endpoint, the account
    /// is blocked. Default: false.
    public var fallsBackOnCredentials: Bool

    /// The rules that change the order of endpoints for some files; see ``EndpointRule``.
    public var rules: [EndpointRule]

    /// Creates an account. The account is checked when it is saved.
    public init(
        _ name: String, endpoints: [Endpoint], maxConcurrentSessions: Int? = nil, rateLimit: Int64? = nil,
        fallbackAfter: Duration = .seconds(60),
        fallsBackOnCredentials: Bool = false, rules: [EndpointRule] = [], timetable: BandwidthTimetable? = nil
    ) {
        self.name = name
        self.endpoints = endpoints
        self.maxConcurrentSessions = maxConcurrentSessions
        self.rateLimit = rateLimit
        self.fallbackAfter = fallbackAfter
        self.fallsBackOnCredentials = fallsBackOnCredentials
        self.rules = rules
        self.timetable = timetable
    }

    /// Decodes an account from any version. Properties that did not exist in that version get their defaults.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            try container.decode(String.self, forKey: .name), endpoints: try container.decode([Endpoint].self, forKey: .endpoints),
            maxConcurrentSessions: try container.decodeIfPresent(Int.self, forKey: .maxConcurrentSessions),
            rateLimit: try container.decodeIfPresent(Int64.self, forKey: .rateLimit),
            fallbackAfter: try container.decodeIfPresent(Duration.self, forKey: .fallbackAfter) ?? .seconds(60),
            fallsBackOnCredentials: try container.decodeIfPresent(Bool.self, forKey: .fallsBackOnCredentials) ?? false,
            rules: try container.decodeIfPresent([EndpointRule].self, forKey: .rules) ?? [],
            timetable: try container.decodeIfPresent(BandwidthTimetable.self, forKey: .timetable))
    }

    private enum CodingKeys: String, CodingKey {
        case name, endpoints, rateLimit, fallbackAfter, fallsBackOnCredentials, rules, timetable
        // Existing databases use this name.
        case maxConcurrentSessions = "sessionLimit"
    }

    /// Whether the accounts have the same name, endpoints and credentials, so that an error of one account also concerns the other.
    func isSameIdentity(as other: Account) -> Bool {
        name == other.name && endpoints == other.endpoints
    }

    /// Checks the name, the endpoints, the limits, the rules and the timetable.
    ///
    /// - Throws: ``QueueError`` with the code `invalidAccount`, or `invalidRequest` for an invalid timetable.
    package func validate() throws(QueueError) {
        guard !name.isEmpty, name.utf8.count <= 255, !name.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw QueueError(.invalidAccount, "The name of an account must have 1 to 255 bytes and no control characters.")
        }
        guard !endpoints.isEmpty else {
            throw QueueError(.invalidAccount, "The account \"\(name)\" has no endpoint. Set at least one.")
        }
        guard maxConcurrentSessions.map({ $0 >= 1 }) ?? true, rateLimit.map({ $0 >= 1 }) ?? true else {
            throw QueueError(.invalidAccount, "The limits of the account \"\(name)\" must be at least 1. Omit them for no limit.")
        }
        guard (.zero ... .seconds(Int64.max)).contains(fallbackAfter) else {
            throw QueueError(.invalidAccount, "The fallback delay of the account \"\(name)\" must be from 0 to \(Int64.max) s.")
        }
        guard Set(endpoints.map(\.address)).count == endpoints.count else {
            throw QueueError(.invalidAccount, "Two endpoints of the account \"\(name)\" have the same address.")
        }
        for endpoint in endpoints {
            do {
                try endpoint.validate()
            } catch {
                throw QueueError(.invalidAccount, "Cannot save the account \"\(name)\". \(error.message)")
            }
        }
        for rule in rules { try rule.validate(in: self) }
        try timetable?.validate()
    }
}

/// The stored reason why no session of an account starts until the app or the user acts.
package struct AccountBlock: Hashable, Sendable, Codable {
    /// The error of a transport, of the class `credentials` or `trust`.
    package var error: TransferError

    package init(error: TransferError) {
        self.error = error
    }
}

/// A snapshot of an account.
public struct AccountStatus: Hashable, Sendable, Codable {
    /// The account.
    public var account: Account
    /// The error that blocks the account, of the class `credentials` or `trust`; nil if the account is not blocked. While it is blocked, no
    /// session of the account starts.
    public var blockingError: TransferError?
    /// The number of sessions that refer to the account, in all states.
    public var sessions: Int
    /// The account's rate limit at this time, according to its timetable, in bytes per second; nil for no limit.
    public var currentRateLimit: Int64?
    /// The endpoints that no session may use now, because they failed too often or asked to back off. Empty for a fleet, because each
    /// member has its own list.
    public var unavailableEndpoints: [UnavailableEndpoint] = []

    /// Whether all endpoints of the account are unavailable.
    package var isUnavailable: Bool { !account.endpoints.isEmpty && unavailableEndpoints.count == account.endpoints.count }
}

/// An endpoint that no session may use for some time, because it failed too often or asked to back off.
public struct UnavailableEndpoint: Hashable, Sendable, Codable {
    /// The endpoint's ``/TransferCore/Endpoint/location``.
    public var location: String
    /// When the next attempt at the endpoint is due. For an immediate attempt, call ``TransferQueue/retryEndpoints(of:)``.
    public var nextAttempt: Date
    /// The last failure at the endpoint, or the request to back off; nil if it is unknown.
    public var error: TransferError?
}

extension AccountStatus {
    /// Decodes a snapshot from any version. A snapshot from an older version has no unavailable endpoints.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            account: try values.decode(Account.self, forKey: .account),
            blockingError: try values.decodeIfPresent(TransferError.self, forKey: .blockingError),
            sessions: try values.decode(Int.self, forKey: .sessions),
            currentRateLimit: try values.decodeIfPresent(Int64.self, forKey: .currentRateLimit),
            unavailableEndpoints: try values.decodeIfPresent([UnavailableEndpoint].self, forKey: .unavailableEndpoints) ?? [])
    }

    /// Creates a snapshot of an account of another kind of queue, such as a fleet.
    package init(of account: Account, blockingError: TransferError?, sessions: Int) {
        self.init(account: account, blockingError: blockingError, sessions: sessions)
    }
}
