import ArgumentParser
import TransferControl
import TransferKit

struct PlacementOptions: ParsableArguments {
    @OptionGroup var position: PositionOptions

    @Option(help: ArgumentHelp("Start after this session has completed.", valueName: "id"), completion: Candidates.sessions)
    var after: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The earliest start: 23:00, tomorrow, +5m, ISO 8601.",
            valueName: "time"))
    var notBefore: StartTime?

    func validate() throws {
        if position.now, after != nil || notBefore != nil {
            throw ValidationError("--now starts immediately. Omit --after and --not-before.")
        }
    }

    var isGiven: Bool { position.isGiven || after != nil || notBefore != nil }

    func apply(to requests: inout [SessionRequest], in queue: any ControllableQueue) async throws {
        for index in requests.indices { try await apply(to: &requests[index], in: queue) }
    }

    /// Sets the dependency and start time of a session. Throws an error if `--after` does not identify exactly one session.
    func apply(to request: inout SessionRequest, in queue: any ControllableQueue) async throws {
        if let after { request.dependency = .after(try await SessionPrefix.resolve(after, in: queue)) }
        request.notBefore = notBefore?.date
    }

    /// Adds the sessions at the position that these options specify, or saves them as drafts.
    ///
    /// - Returns: The IDs of the sessions. If `--dedupe` finds an existing session, the ID of this session.
    func add(_ requests: [SessionRequest], to queue: any ControllableQueue, asDrafts: Bool = false) async throws -> [SessionID] {
        let ids = try await added(requests, to: queue, asDrafts: asDrafts)
        // An existing session keeps its position.
        try await position.start(ids.filter(Set(requests.map(\.id)).contains), in: queue)
        return ids
    }

    private func added(_ requests: [SessionRequest], to queue: any ControllableQueue, asDrafts: Bool) async throws -> [SessionID] {
        do {
            if asDrafts { return try await queue.saveDrafts(requests) }
            return try await queue.add(requests, at: position.at, held: position.hold)
        } catch let error as QueueError where error.code == .invalidRequest {
            // This call may be a retry. The queue's previous owner may have added all sessions, or none, before it exited without
            // responding.
            for request in requests {
                guard (try? await queue.status(of: request.id)) != nil else { throw error }
            }
            return requests.map(\.id)
        }
    }
}
