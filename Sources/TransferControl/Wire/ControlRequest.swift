import Foundation
import TransferKit

/// What a client asks for: once a connection, after any number of ``stage(_:)``, which have no answer.
enum ControlRequest: Codable, Sendable {
    case owner
    case accounts
    case account(name: String)
    case save(Account)
    /// Answered with whether it was saved.
    case replace(Account?, with: Account)
    case deleteAccount(name: String, cascades: Bool)
    case unblockAccount(name: String)
    case retryEndpoints(account: String)

    case status
    case statistics
    case forecast
    case storeHealth
    case quarantinedCount
    case quarantined
    case restoreQuarantined(Int64)
    case dropQuarantined(Int64)
    case setSessionLimit(Int?, account: String?)
    case setRateLimit(Int64?, account: String?)
    case setNetworkCondition(NetworkCondition)
    case start
    case stop(StopMode, deadline: Duration?)
    case stopAndWait(StopMode, deadline: Duration?)

    case sessions(from: Int, to: Int)
    case sessionIDs
    case findSessionIDs(prefix: String, limit: Int)
    case session(SessionID)
    case items(of: SessionID, from: Int64, limit: Int)

    /// A part of what a later request is about.
    case stage(StagedPart)
    /// Adds the sessions that were staged.
    case add(at: Int?, held: Bool)
    /// Adds the items that were staged.
    case addItems(to: SessionReference)
    case apply(SessionOperation, to: SessionReference)
    case applyToGroup(SessionOperation, to: SessionGroup)
    /// Applies to the group of the IDs that were staged.
    case applyToStaged(SessionOperation)

    /// Answered with ``EventMessage``s until the queue ends; without a revision from now on.
    case events(since: UInt64?)
    /// Ends an owner that can be asked to; answered when it has let the store go.
    case end

    /// Refuses numbers that no client sends and that the queue does not check itself, before anything is computed with them.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest`.
    func check() throws(QueueError) {
        let isPossible =
            switch self {
            case .items(_, _, let limit), .findSessionIDs(_, let limit): limit >= 0
            // Sums with longer ones have no value.
            case .stop(_, let deadline?), .stopAndWait(_, let deadline?): (.zero ... .seconds(Int64.max)).contains(deadline)
            default: true
            }
        guard isPossible else {
            throw QueueError(.invalidRequest, "The request has a number that is negative or too large.")
        }
    }

    /// Whether it only waits, for as long as that takes: of no use to a client that is gone.
    var isWait: Bool {
        switch self {
        case .events, .stopAndWait: true
        default: false
        }
    }
}

/// An answer, or a part of one that is a list.
struct ControlAnswer<Value: Codable & Sendable>: Codable, Sendable {
    var value: Value?
    /// Whether another part follows.
    var more: Bool?
    var error: QueueError?
}

/// The answer to what has none.
struct Nothing: Codable, Sendable {}

/// What follows the answer to a request for events.
struct EventMessage: Codable, Sendable {
    /// Nil at the end: the queue was shut down.
    var event: QueueEvent?
}
