import Foundation
import TransferKit

/// An operation on sessions. Its name is the corresponding `transferq` command: `now`, `next`, `pause` and so on.
struct OperationRequest: Sendable {
    static let names = [
        "now", "next", "pause", "resume", "hold", "release", "yield", "cancel", "retry", "remove", "move", "enqueue", "set",
    ]

    /// A position in the queue, as the client describes it. The corresponding index depends on the current order.
    private enum Position: Sendable {
        case front, end
        case index(Int)
        case before(SessionID)
        case after(SessionID)
    }

    let name: String
    private let operation: SessionOperation?
    private let position: Position?
    private let isHeld: Bool

    /// Parses an operation whose options are members of a JSON object, and removes these members. The caller handles the other members.
    ///
    /// - Throws: A ``Problem``.
    init(_ name: String, _ members: inout JSONMembers) throws(Problem) {
        self.name = name
        var (operation, position, isHeld): (SessionOperation?, Position?, Bool) = (nil, nil, false)
        switch name {
        case "now": operation = .run(again: try members.bool("again"))
        case "next": operation = .runNext
        case "pause": operation = .pause
        case "resume": operation = .resume
        case "hold": operation = .hold
        case "release": operation = .release
        case "yield": operation = .yield
        case "cancel": operation = .cancel(discarding: try members.bool("discard"))
        case "retry": operation = .retry
        case "remove": operation = .remove(isForced: try members.bool("force"))
        case "set": operation = .update(try Self.update(&members))
        case "move":
            position = try Self.position(&members)
            guard position != nil else { throw .invalid("A move needs \"at\", \"before\", \"after\" or \"to\".") }
        case "enqueue":
            isHeld = try members.bool("hold")
            position = try Self.position(&members) ?? .end
        default:
            throw Problem(
                404, "noSuchOperation", "There is no operation \(name). The operations are \(Self.names.joined(separator: ", ")).")
        }
        (self.operation, self.position, self.isHeld) = (operation, position, isHeld)
    }

    /// Whether the operation sets the index of sessions (`move` or `enqueue`), so that a condition on the order applies.
    var changesOrder: Bool { position != nil }

    private static func position(_ members: inout JSONMembers) throws(Problem) -> Position? {
        var positions: [Position] = []
        if let index = try members.integer("at", in: 0...Int64(Int32.max)) { positions.append(.index(Int(index))) }
        if let id = try members.session("before") { positions.append(.before(id)) }
        if let id = try members.session("after") { positions.append(.after(id)) }
        switch try members.string("to") {
        case nil: break
        case "front": positions.append(.front)
        case "end": positions.append(.end)
        default: throw .invalid("\"to\" must be front or end.")
        }
        guard positions.count < 2 else { throw .invalid("Give only one of \"at\", \"before\", \"after\" and \"to\".") }
        return positions.first
    }

    private static func update(_ members: inout JSONMembers) throws(Problem) -> SessionUpdate {
        var update = SessionUpdate()
        if members.contains("rateLimit") {
            update.rateLimit = try members.integer("rateLimit", in: 1 ... .max).map { .bytesPerSecond($0) } ?? .unlimited
        }
        update.tags = try members.strings("tags")
        update.name = try members.string("name")
        guard update.name?.isEmpty != true else { throw .invalid("\"name\" is empty.") }
        update.account = try members.string("account")
        if members.contains("notBefore") { update.notBefore = try members.date("notBefore").map { .set($0) } ?? .remove }
        if members.contains("after") { update.dependency = try members.session("after").map { .set(.after($0)) } ?? .remove }
        if members.contains("context") { update.context = members.json("context").map { .set($0) } ?? .remove }
        if members.contains("deadline") {
            update.deadline = try members.integer("deadline", in: 1...Int64(Int32.max)).map { .set(.seconds($0)) } ?? .remove
        }
        if members.contains("parallel") {
            update.filesInFlight = try members.integer("parallel", in: 1...10_000).map { .set(Int($0)) } ?? .remove
        }
        guard update != SessionUpdate() else {
            throw .invalid(
                "There is nothing to set. Give rateLimit, tags, name, account, notBefore, after, context, deadline or parallel."
            )
        }
        return update
    }

    /// Returns the operation of the queue for the selected sessions.
    ///
    /// - Parameters:
    ///   - sessions: The IDs; empty if the client selects sessions in another way, for example by tag.
    ///   - revision: The revision of the queue's order that the client has read; nil to accept any order.
    func operation(for sessions: [SessionID], expecting revision: UInt64?, in queue: any ControllableQueue) async throws -> SessionOperation
    {
        if let operation { return operation }
        let destination = try await destination(for: sessions, expecting: revision, in: queue)
        return name == "enqueue" ? .enqueue(to: destination, isHeld: isHeld) : .move(to: destination)
    }

    /// Returns the destination of the operation `move` or `enqueue`. If the client sent a revision of the order, the destination is an index with
    /// that revision.
    ///
    /// This method reads the index before the transaction of the operation. If the order still has the expected revision in the transaction, the
    /// order also had this revision when the index was read, because revisions only grow.
    private func destination(for sessions: [SessionID], expecting revision: UInt64?, in queue: any ControllableQueue) async throws
        -> MoveDestination
    {
        guard let revision else {
            return switch position {
            case .index(let index): .index(index)
            case .before(let id): .before(id)
            case .after(let id): .after(id)
            case .front: .front
            case .end, nil: .end
            }
        }
        // The index refers to the order without the moved sessions. Enqueued sessions are drafts, which are not in the order.
        let moved = name == "move" ? try await queue.sessions(in: .sessions(sessions)) : []
        func index(beside id: SessionID, _ offset: Int) async throws -> MoveDestination {
            let other = try await queue.status(of: id).index
            guard other >= 0, !sessions.contains(id) else {
                throw QueueError(.invalidRequest, "The session \(id) is a draft, or one of the moved sessions. Choose another session.")
            }
            return .index(other + offset - moved.count(where: { (0..<other).contains($0.index) }), expecting: revision)
        }
        switch position {
        case .index(let index): return .index(index, expecting: revision)
        case .before(let id): return try await index(beside: id, 0)
        case .after(let id): return try await index(beside: id, 1)
        case .front: return .index(0, expecting: revision)
        case .end, nil: return .index(max(0, try await queue.status().sessions - moved.count), expecting: revision)
        }
    }
}
