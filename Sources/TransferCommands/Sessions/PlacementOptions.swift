import ArgumentParser
import TransferControl
import TransferKit

/// Where new sessions go in the queue, and when they may start.
struct PlacementOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("The index of the first one; otherwise the end of the queue.", valueName: "index"))
    var at: Int?

    @Flag(help: "Be the next that starts.")
    var next = false

    @Flag(help: "Run before all others; another session makes room.")
    var now = false

    @Flag(help: "Wait to be released.")
    var hold = false

    @Option(help: ArgumentHelp("Not before this session completed.", valueName: "id"), completion: Candidates.sessions)
    var after: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Not before this time: ISO 8601, in this machine's time zone unless it names one, or so long from now, as +90s or +5m.",
            valueName: "time"))
    var notBefore: StartTime?

    func validate() throws {
        if let at, at < 0 { throw ValidationError("--at takes an index, a number from 0 on, and not \(at).") }
        let places = [("--at", at != nil), ("--next", next), ("--now", now)].filter(\.1).map(\.0)
        guard places.count < 2 else { throw ValidationError("\(places.joined(separator: " and ")) exclude each other.") }
        if hold, next || now { throw ValidationError("--hold and \(places[0]) exclude each other.") }
        if now, after != nil || notBefore != nil { throw ValidationError("--now starts at once; leave --after and --not-before out.") }
    }

    /// Sets what the sessions wait for.
    func apply(to requests: inout [SessionRequest], in queue: any ControllableQueue) async throws {
        let other: SessionID? = if let after { try await SessionPrefix.resolve(after, in: queue) } else { nil }
        for index in requests.indices {
            requests[index].dependency = other.map(SessionDependency.after)
            requests[index].notBefore = notBefore?.date
        }
    }

    /// Adds the sessions where they are to be.
    func add(_ requests: [SessionRequest], to queue: any ControllableQueue) async throws -> [SessionID] {
        let ids = try await added(requests, to: queue)
        // One that was there already stays where somebody put it.
        let new = ids.filter(Set(requests.map(\.id)).contains)
        if next, !new.isEmpty { _ = try await queue.apply(.runNext, to: SessionGroup.sessions(new)) }
        if now, !new.isEmpty { _ = try await queue.apply(.run(), to: SessionGroup.sessions(new)) }
        return ids
    }

    private func added(_ requests: [SessionRequest], to queue: any ControllableQueue) async throws -> [SessionID] {
        do {
            return try await queue.add(requests, at: at, held: hold)
        } catch let error as QueueError where error.code == .invalidRequest {
            // An owner that ended before it answered had done it nevertheless, all or nothing, and this is the second time.
            for request in requests {
                guard (try? await queue.session(request.id)) != nil else { throw error }
            }
            return requests.map(\.id)
        }
    }
}
