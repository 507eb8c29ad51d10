/// The accounts, with indexes by name and by endpoint. Each change updates all indexes.
package struct AccountIndex: Sendable {
    package private(set) var entries: [AccountKey: Scheduler.AccountEntry] = [:]
    private(set) var keys: [String: AccountKey] = [:]
    private var usersByEndpoint: [EndpointHealth.Key: Set<AccountKey>] = [:]

    /// The accounts with this endpoint. Accounts that use the same address with other credentials or settings share the endpoint's health.
    func users(of endpoint: EndpointHealth.Key) -> Set<AccountKey> { usersByEndpoint[endpoint] ?? [] }

    mutating func set(_ key: AccountKey, _ entry: Scheduler.AccountEntry?) {
        let before = entries[key]
        if let name = before?.account.name { keys[name] = nil }
        entries[key] = entry
        if let name = entry?.account.name { keys[name] = key }
        guard before?.account.endpoints != entry?.account.endpoints else { return }
        for endpoint in before?.account.endpoints ?? [] {
            let endpoint = EndpointHealth.Key(endpoint)
            usersByEndpoint[endpoint]?.remove(key)
            if usersByEndpoint[endpoint]?.isEmpty == true { usersByEndpoint[endpoint] = nil }
        }
        for endpoint in entry?.account.endpoints ?? [] { usersByEndpoint[EndpointHealth.Key(endpoint), default: []].insert(key) }
    }
}
