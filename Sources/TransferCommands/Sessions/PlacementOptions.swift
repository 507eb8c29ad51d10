import ArgumentParser
import TransferControl
import TransferKit

/// Options for the position and start of new sessions.
struct PlacementOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The queue index of the first new session (default: the end of the queue).", valueName: "index"))
    var at: Int?

    @Flag(help: "Start before all other waiting sessions.")
    var next = false

    @Flag(help: "Run before all other sessions. If no slot is free, interrupt another session.")
    var now = false

    @Flag(help: "Hold the session until \"transferq release\".")
    var hold = false

    @Option(help: ArgumentHelp("Start after this session has completed.", valueName: "id"), completion: Candidates.sessions)
    var after: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Start at this time or later: 23:00, tomorrow, \"tomorrow 6:30\", ISO 8601, or a duration from now such as +90s or +5m.",
            valueName: "time"))
    var notBefore: StartTime?

    func validate() throws {
        if let at, at < 0 { throw ValidationError("--at must be at least 0, not \(at).") }
        let given = [("--at", at != nil), ("--next", next), ("--now", now)].filter(\.1).map(\.0)
        guard given.count < 2 else { throw ValidationError("\(given.joined(separator: " and ")) can't be used together.") }
        if hold, next || now { throw ValidationError("--hold and \(given[0]) can't be used together.") }
        if now, after != nil || notBefore != nil { throw ValidationError("--now starts immediately. Omit --after and --not-before.") }
    }

    /// Whether any of these options is given.
    var isGiven: Bool { at != nil || next || now || hold || after != nil || notBefore != nil }

    /// Whether an option for the position or the initial state is given.
    var hasPosition: Bool { at != nil || next || now || hold }

    /// Sets the dependency and start time of the sessions.
    func apply(to requests: inout [SessionRequest], in queue: any ControllableQueue) async throws {
        for index in requests.indices { try await apply(to: &requests[index], in: queue) }
    }

    /// Sets the dependency and start time of a session.
    func apply(to request: inout SessionRequest, in queue: any ControllableQueue) async throws {
        if let after { request.dependency = .after(try await SessionPrefix.resolve(after, in: queue)) }
        request.notBefore = notBefore?.date
    }

    /// Adds the sessions at the position that these options specify, or saves them as drafts.
    func add(_ requests: [SessionRequest], to queue: any ControllableQueue, asDrafts: Bool = false) async throws -> [SessionID] {
        let ids = try await added(requests, to: queue, asDrafts: asDrafts)
        // For a duplicate, the queue returns the ID of the existing session, which keeps its position.
        try await start(ids.filter(Set(requests.map(\.id)).contains), in: queue)
        return ids
    }

    /// Gives new sessions the start priority that these options specify.
    func start(_ new: [SessionID], in queue: any ControllableQueue) async throws {
        if next, !new.isEmpty { _ = try await queue.apply(.runNext, to: SessionGroup.sessions(new)) }
        if now, !new.isEmpty { _ = try await queue.apply(.run(), to: SessionGroup.sessions(new)) }
    }

    private func added(_ requests: [SessionRequest], to queue: any ControllableQueue, asDrafts: Bool) async throws -> [SessionID] {
        do {
            if asDrafts { return try await queue.saveDrafts(requests) }
            return try await queue.add(requests, at: at, held: hold)
        } catch let error as QueueError where error.code == .invalidRequest {
            // This call may be a retry. The previous owner may have added all sessions, or none, before it exited without responding.
            for request in requests {
                guard (try? await queue.status(of: request.id)) != nil else { throw error }
            }
            return requests.map(\.id)
        }
    }
}
