import TransferCore
import TransferKit

extension Account {
    /// Parses an account that a client saves. The format is that of `transferq account show --json`, without the account's name and status.
    ///
    /// - Parameter stored: The stored account, which provides the properties that the request can't contain; nil for a new account.
    /// - Throws: A ``Problem``.
    init(_ name: String, _ members: JSONMembers, keeping stored: Account?) throws(Problem) {
        var members = members
        guard let objects = try members.objects("endpoints") else { throw .invalid("\"endpoints\" is missing.") }
        var endpoints: [Endpoint] = []
        for object in objects { endpoints.append(try Endpoint(object)) }
        var account = stored ?? Account(name, endpoints: endpoints)
        account.endpoints = endpoints
        account.maxConcurrentSessions = try members.integer("maxSessions", in: 1...Int64(Int32.max)).map { Int($0) }
        account.rateLimit = try members.integer("rateLimit", in: 1 ... .max)
        account.timetable = try members.timetable("timetable")
        try members.finish()
        self = account
    }
}

extension Endpoint {
    fileprivate init(_ members: JSONMembers) throws(Problem) {
        var members = members
        guard let transport = try members.string("transport"), let address = try members.string("address") else {
            throw .invalid("Each endpoint needs \"transport\" and \"address\".")
        }
        let settings = try members.texts("settings") ?? [:]
        // In the description of an account, "…" replaces each secret. Saving such a description would overwrite the secret with "…".
        guard !address.contains("…"), !settings.values.contains(where: { $0.contains("…") }) else {
            throw .invalid("The address or a setting contains \"…\" in place of a secret. Send the whole value.")
        }
        var credentials: [CredentialReference] = []
        for object in try members.objects("credentials") ?? [] { credentials.append(try CredentialReference(object)) }
        self.init(
            transport: TransportID(rawValue: transport), address: address, credentials: credentials,
            settings: settings)
        try members.finish()
    }
}

extension CredentialReference {
    fileprivate init(_ members: JSONMembers) throws(Problem) {
        var members = members
        guard let kind = try members.string("kind") else { throw .invalid("Each credential needs \"kind\".") }
        var sources: [Source] = []
        if let name = try members.string("environment") { sources.append(.environment(name)) }
        if let path = try members.string("file") { sources.append(.file(path)) }
        if let name = try members.string("app") { sources.append(.app(name)) }
        // The description of an account contains `memory` for a secret in the memory of another process. A client can send this member back.
        guard try !members.bool("memory") else {
            throw .invalid(
                "A secret is in the memory of another process. Use \"environment\" or \"file\" for an account that you change here.")
        }
        guard let source = sources.first, sources.count == 1 else {
            throw .invalid("Each credential needs \"environment\", \"file\" or \"app\". The server never receives secrets.")
        }
        self.init(kind: Kind(rawValue: kind), source: source, name: try members.string("name"))
        try members.finish()
    }
}
