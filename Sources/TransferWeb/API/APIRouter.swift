import TransferControl
import TransferKit
import TransferOutput

/// Responds to requests for the resources below `/api/v1`.
struct APIRouter: Sendable {
    let queue: any ControllableQueue
    let events: EventStream
    let rates: RateHistory
    let snapshots: SnapshotCache
    let diagnostics: DiagnosticProgram
    /// The maximum number of sessions that the server examines for a request with a filter.
    let scanLimit: Int

    /// The maximum number of sessions or items in one response.
    static let pageLimit: Int64 = 500

    /// Returns the response to a request from a client with access. If the request is a change, the caller has checked that the client may make
    /// changes.
    ///
    /// - Parameter path: The components of the path after `/api/v1`.
    /// - Throws: A ``Problem``, or an error of the queue.
    func response(to request: WebRequest, _ path: [String]) async throws -> WebResponse {
        let isRead = request.method == "GET" || request.method == "HEAD"
        guard isRead else { return try await change(request, path) }
        let key = request.query.map { "\($0.name)=\($0.value)" }
        switch (path.first, path.count) {
        case ("openapi.json", 1): return WebResponse(200, "application/json", PageAssets.openAPI)
        case ("events", 1) where request.method == "HEAD": return WebResponse(200, "text/event-stream")
        case ("events", 1): return try await events.response(since: try Self.revision(of: request))
        case ("rates", 1):
            return WebResponse(await rates.json(after: try Self.integer(request, "after", in: 0 ... .max) ?? 0))
        case ("queue", 1): return try await shared("queue") { try await queueStatus() }
        case ("sessions", 1):
            // Without this check, a misspelt filter would list all sessions.
            if let name = request.query.first(where: { !SessionFilter.names.contains($0.name) })?.name {
                let names = SessionFilter.names.joined(separator: ", ")
                throw Problem.invalid("There is no parameter \"\(name)\". The parameters are \(names).")
            }
            let filter = try SessionFilter(request)
            return try await shared("sessions?\(key)") { try await sessions(filter) }
        case ("sessions", 2):
            let id = try Self.session(path[1])
            return try await shared("sessions/\(id)") { WebResponse(JSONValue(try await queue.status(of: id))) }
        case ("sessions", 3) where path[2] == "items":
            let id = try Self.session(path[1])
            let start = try Self.integer(request, "from", in: 0 ... .max) ?? 0
            let limit = try Self.integer(request, "limit", in: 1...Self.pageLimit) ?? 100
            return try await shared("items/\(id)/\(start)/\(limit)") { try await items(of: id, from: start, limit: Int(limit)) }
        case ("accounts", 1):
            return try await shared("accounts") { WebResponse(["accounts": .array(try await queue.accounts().map(JSONValue.init))]) }
        case ("accounts", 2):
            guard let account = try await queue.account(path[1]) else {
                throw QueueError(.noSuchAccount, "There is no account named \"\(path[1])\".")
            }
            return WebResponse(JSONValue(account))
        case ("quarantine", 1): return try await quarantine()
        default: throw Self.isKnown(path) ? Problem.methodNotAllowed(Self.methods(of: path)) : .notFound(request.path)
        }
    }

    private func shared(_ key: String, _ read: @escaping @Sendable () async throws -> WebResponse) async throws -> WebResponse {
        try await snapshots.value(for: key, read: read)
    }

    // MARK: Reads

    private func queueStatus() async throws -> WebResponse {
        let status = try await queue.status()
        let (remaining, statistics) = (try await queue.remainingSessions(), try await queue.statistics())
        return WebResponse(JSONValue(status, remaining, statistics), headers: [("ETag", Self.tag(status.orderRevision))])
    }

    private func sessions(_ filter: SessionFilter) async throws -> WebResponse {
        // Read the status first. If the order changes in between, a move with the older revision fails instead of using a wrong index.
        let status = try await queue.status()
        let page = try await filter.page(of: queue, scanning: scanLimit)
        return WebResponse(
            [
                "orderRevision": .integer(Int64(clamping: status.orderRevision)), "revision": .integer(Int64(clamping: status.revision)),
                "total": JSONValue(status.sessions), "next": JSONValue(page.next),
                "sessions": .array(page.sessions.map { JSONValue($0) }),
            ], headers: [("ETag", Self.tag(status.orderRevision))])
    }

    private func items(of id: SessionID, from start: Int64, limit: Int) async throws -> WebResponse {
        // One more item shows whether there is a next page.
        let items = try await queue.items(of: id, from: start, limit: limit + 1)
        let next = items.count > limit ? items[limit].position : nil
        return WebResponse([
            "next": JSONValue(next),
            "items": .array(
                items.prefix(limit).map { item in
                    guard case .object(let members) = JSONValue(item) else { return .null }
                    return .object([(name: "position", value: .integer(item.position))] + members)
                }),
        ])
    }

    private func quarantine() async throws -> WebResponse {
        WebResponse([
            "quarantined": .array(
                try await queue.quarantined().map { row in
                    [
                        "number": .integer(row.number), "id": JSONValue(row.session?.description), "name": JSONValue(row.name),
                        "foundAt": JSONValue(row.foundAt), "reason": .string(row.reason),
                    ]
                })
        ])
    }

    // MARK: Parameters

    static func tag(_ orderRevision: UInt64) -> String { "\"order-\(orderRevision)\"" }

    /// The revision of the order in `If-Match`; nil without this header, or if its value is `*`.
    static func expectedOrder(_ request: WebRequest) throws(Problem) -> UInt64? {
        guard let condition = request["If-Match"], condition != "*" else { return nil }
        guard condition.hasPrefix("\"order-"), condition.hasSuffix("\""), let revision = UInt64(condition.dropFirst(7).dropLast()) else {
            throw .invalid("If-Match must be the ETag of a response with sessions.")
        }
        return revision
    }

    static func session(_ text: String) throws(Problem) -> SessionID {
        guard let id = SessionID(text) else {
            throw Problem(404, QueueError.Code.noSuchSession.rawValue, "There is no session \(text).")
        }
        return id
    }

    static func integer(_ request: WebRequest, _ name: String, in range: ClosedRange<Int64>) throws(Problem) -> Int64? {
        guard let text = request.parameter(name) else { return nil }
        guard let value = Int64(text), range.contains(value) else {
            throw .invalid("The parameter \(name) must be an integer from \(range.lowerBound) to \(range.upperBound).")
        }
        return value
    }

    /// The revision after which a client requests events. A browser that reconnects sends `Last-Event-ID`, which takes precedence over the
    /// URL's parameter `since`.
    private static func revision(of request: WebRequest) throws(Problem) -> UInt64? {
        guard let text = request["Last-Event-ID"] ?? request.parameter("since") else { return nil }
        guard let revision = UInt64(text) else { throw .invalid("The revision of the last event must be a number.") }
        return revision
    }

    // MARK: Methods

    /// Whether a path names a resource, for any method.
    static func isKnown(_ path: [String]) -> Bool { !methods(of: path).isEmpty }

    /// The methods of a resource; empty if there is no such resource.
    static func methods(of path: [String]) -> [String] {
        switch (path.first, path.count) {
        case ("openapi.json", 1), ("events", 1), ("rates", 1), ("queue", 1), ("accounts", 1), ("quarantine", 1): ["GET", "HEAD"]
        case ("sessions", 1): ["GET", "HEAD", "POST"]
        case ("sessions", 2) where path[1] == "actions": ["POST"]
        case ("sessions", 2): ["GET", "HEAD"]
        case ("sessions", 3) where path[2] == "items": ["GET", "HEAD"]
        case ("sessions", 3) where OperationRequest.names.contains(path[2]): ["POST"]
        case ("accounts", 2): ["GET", "HEAD", "PUT", "DELETE"]
        case ("accounts", 3) where ["unblock", "retry", "check", "set"].contains(path[2]): ["POST"]
        case ("doctor", 1): ["POST"]
        case ("queue", 2) where ["start", "stop", "drain", "set"].contains(path[1]): ["POST"]
        case ("quarantine", 3) where ["retry", "remove"].contains(path[2]): ["POST"]
        default: []
        }
    }
}
