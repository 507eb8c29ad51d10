import TransferControl
import TransferCore
import TransferKit
import TransferOutput

extension APIRouter {
    /// The properties of a change request that are not in the request's body.
    struct Condition {
        /// The revision of the queue's order that the client has read; nil to accept any order. Each change of the order increments the
        /// revision.
        var order: UInt64?
        /// The client's idempotency key, for a request that the client may repeat; nil for none.
        var key: String?
        var isDelete = false
    }

    /// Performs the change that a request describes. Later reads return the new state.
    ///
    /// - Parameter path: The components of the path after `/api/v1`.
    /// - Throws: A ``Problem``, or an error of the queue.
    func change(_ request: WebRequest, _ path: [String]) async throws -> WebResponse {
        let methods = Self.methods(of: path)
        guard !methods.isEmpty else { throw Problem.notFound(request.path) }
        guard methods.contains(request.method) else { throw Problem.methodNotAllowed(methods) }
        let condition = APIRouter.Condition(
            order: try Self.expectedOrder(request), key: request["Idempotency-Key"], isDelete: request.method == "DELETE")
        return try await change(path, try JSONMembers(request), condition)
    }

    /// Performs a change. The caller must have checked that the path names a resource.
    func change(_ path: [String], _ members: JSONMembers, _ condition: Condition = Condition()) async throws -> WebResponse {
        let response: WebResponse
        do {
            // `add` checks the revision itself, because a repeated addition succeeds with any revision.
            if path != ["sessions"] { try await check(condition) }
            response = try await perform(path, members, condition)
        } catch {
            // The queue may have performed part of the change.
            await snapshots.invalidate()
            throw error
        }
        await snapshots.invalidate()
        return response
    }

    /// Rejects a change if the order has changed since the client read it. Moves and additions compare the revision again, in their
    /// transaction.
    private func check(_ condition: Condition) async throws {
        guard let expected = condition.order else { return }
        let current = try await queue.status().orderRevision
        guard current != expected else { return }
        throw Problem(
            412, QueueError.Code.staleOrder.rawValue,
            "The request expects revision \(expected) of the order, but the current revision is \(current). Read the order again.")
    }

    private func perform(_ path: [String], _ members: JSONMembers, _ condition: Condition) async throws -> WebResponse {
        switch (path[0], path.count) {
        case ("sessions", 1): return try await add(members, condition)
        case ("sessions", 2): return try await applyToGroup(members, expecting: condition.order)
        case ("sessions", 3): return try await apply(path[2], to: try Self.session(path[1]), members, expecting: condition.order)
        case ("accounts", 2) where !condition.isDelete:
            let stored = try await queue.account(path[1])?.account
            guard try await queue.save(try Account(path[1], members, keeping: stored), replacing: stored) else {
                throw Problem(409, "accountChanged", "Another client has changed the account. Read it again.")
            }
            return try await account(path[1])
        case ("accounts", 2):
            var members = members
            let cascades = try members.bool("cascade")
            try members.finish()
            try await queue.deleteAccount(path[1], cascades: cascades)
            return WebResponse(204)
        case ("accounts", _): return try await change(account: path[1], path[2], members)
        case ("doctor", _):
            try members.finish()
            return try await diagnostics.findings(["doctor"])
        case ("queue", _): return try await change(queue: path[1], members)
        default: return try await change(quarantined: path[1], path[2], members)
        }
    }

    // MARK: Sessions

    private func add(_ members: JSONMembers, _ condition: Condition) async throws -> WebResponse {
        let added = try AddRequest(members, idempotencyKey: condition.key)
        if added.isDraft { try await check(condition) }
        let ids: [SessionID]
        do {
            ids =
                added.isDraft
                ? try await queue.saveDrafts([added.request])
                : try await queue.add([added.request], at: added.index, expecting: condition.order, held: added.isHeld)
        } catch {
            throw Problem(error, isConditional: condition.order != nil)
        }
        let id = ids.first ?? added.request.id
        if id != added.request.id, condition.key != nil, try await !added.matches(id, in: queue) {
            throw Problem(422, "idempotencyKeyReused", "An earlier request with this Idempotency-Key added other content. Use another key.")
        }
        // A repeated request gets the session of the first request.
        return WebResponse(
            ["id": .string(id.description)], id == added.request.id ? 201 : 200, headers: [("Location", "/api/v1/sessions/\(id)")])
    }

    private func apply(_ name: String, to id: SessionID, _ members: JSONMembers, expecting order: UInt64?) async throws -> WebResponse {
        var members = members
        let operation = try OperationRequest(name, &members)
        try members.finish()
        let expected = operation.changesOrder ? order : nil
        do {
            let operation = try await operation.operation(for: [id], expecting: expected, in: queue)
            // Read the index before the move. If the order changes in between, the move fails.
            let former = expected == nil ? nil : try await queue.status(of: id).index
            let state = try await queue.apply(operation, to: .id(id))
            let result: JSONValue = ["id": .string(id.description), "state": JSONValue(state?.rawValue)]
            guard case .move(to: .index(let index, let revision?)) = operation else { return WebResponse(result) }
            // A move increments the revision, unless the session was already at the destination.
            let current = index == former ? revision : revision + 1
            return WebResponse(.joined(result, ["orderRevision": .integer(Int64(clamping: current))]))
        } catch {
            throw Problem(error, isConditional: expected != nil)
        }
    }

    private func applyToGroup(_ members: JSONMembers, expecting order: UInt64?) async throws -> WebResponse {
        var members = members
        guard let name = try members.string("operation") else { throw Problem.invalid("\"operation\" is missing.") }
        guard OperationRequest.names.contains(name) else { throw Problem.invalid("There is no operation \(name).") }
        let selection = try ActionTargets(&members)
        let operation = try OperationRequest(name, &members)
        try members.finish()
        // With a condition on the order, only IDs are accepted: a filter could also select a session that another client has just added.
        guard order == nil || selection.hasIDs else { throw Problem.invalid("If-Match needs \"ids\".") }
        let undo = order != nil && name == "move" ? try await selection.formerSuccessors(in: queue) : nil
        let applied: ActionTargets.Applied
        do {
            applied = try await selection.apply(operation, expecting: operation.changesOrder ? order : nil, in: queue)
        } catch {
            throw Problem(error, isConditional: order != nil)
        }
        let result: JSONValue = [
            "changed": .array(applied.changed.map { .string($0.description) }),
            "refused": .array(
                applied.refused.map { id, error in
                    ["id": .string(id.description), "code": .string(error.code.rawValue), "detail": .string(error.message)]
                }),
        ]
        guard let undo else { return WebResponse(result) }
        let steps = undo.map { id, next -> JSONValue in
            ["id": .string(id.description), next == nil ? "to" : "before": .string(next?.description ?? "end")]
        }
        return WebResponse(.joined(result, ["undo": .array(steps)]))
    }

    // MARK: Accounts

    private func account(_ name: String) async throws -> WebResponse {
        guard let account = try await queue.account(name) else {
            throw QueueError(.noSuchAccount, "There is no account named \"\(name)\".")
        }
        return WebResponse(JSONValue(account))
    }

    private func change(account name: String, _ verb: String, _ members: JSONMembers) async throws -> WebResponse {
        var members = members
        let (setsLimit, setsRate, setsTimetable) =
            (members.contains("maxSessions"), members.contains("rateLimit"), members.contains("timetable"))
        if verb == "set" {
            let limit = try members.integer("maxSessions", in: 1...Int64(Int32.max)).map { Int($0) }
            let rate = try members.integer("rateLimit", in: 1 ... .max)
            let timetable = try members.timetable("timetable")
            try members.finish()
            guard setsLimit || setsRate || setsTimetable else {
                throw Problem.invalid("There is nothing to set. Give maxSessions, rateLimit or timetable.")
            }
            if setsLimit { try await queue.setMaxConcurrentSessions(limit, account: name) }
            if setsRate { try await queue.setRateLimit(rate, account: name) }
            if setsTimetable { try await queue.setTimetable(timetable, account: name) }
        } else {
            try members.finish()
            if verb == "check" {
                // For an unknown account, this call throws the same error as in other requests.
                _ = try await account(name)
                return try await diagnostics.findings(["account", "check"], of: name)
            }
            if verb == "unblock" { try await queue.unblockAccount(name) } else { try await queue.retryEndpoints(of: name) }
        }
        return try await account(name)
    }

    // MARK: The queue

    private func change(queue verb: String, _ members: JSONMembers) async throws -> WebResponse {
        var members = members
        switch verb {
        case "start":
            try members.finish()
            try await queue.start()
        case "stop", "drain":
            try members.finish()
            // Running sessions can take a long time, so the response does not wait for them.
            try await queue.stop(verb == "stop" ? .interrupt : .drain, deadline: nil)
        default:
            let limits = try QueueLimits(&members)
            try members.finish()
            try await limits.apply(to: queue)
        }
        let status = try await queue.status()
        return WebResponse(.joined(["mode": .string(status.mode.rawValue)], JSONValue(limitsOf: status)))
    }

    private func change(quarantined text: String, _ verb: String, _ members: JSONMembers) async throws -> WebResponse {
        try members.finish()
        guard let number = Int64(text) else { throw Problem.notFound("quarantine/\(text)") }
        if verb == "retry" { try await queue.restoreQuarantined(number) } else { try await queue.dropQuarantined(number) }
        return WebResponse(204)
    }
}
