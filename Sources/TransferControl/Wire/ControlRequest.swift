import Foundation
import TransferKit

/// A client's message: a request, or a part of the request's content.
///
/// Each connection carries one request, after any number of ``stage(_:)`` messages, which have no response.
enum ControlRequest: Codable, Sendable {
    case owner
    case accounts
    case account(name: String)
    case save(Account)
    /// The response reports whether the account was saved.
    case replace(Account?, with: Account)
    case deleteAccount(name: String, cascades: Bool)
    case unblockAccount(name: String)
    case retryEndpoints(account: String)

    case status
    case remainingUploads
    case statistics
    case forecast
    case storeHealth
    case quarantinedCount
    case quarantined
    case restoreQuarantined(Int64)
    case dropQuarantined(Int64)
    case setMaxConcurrentSessions(Int?, account: String?)
    case setRateLimit(Int64?, account: String?)
    case setTimetable(BandwidthTimetable?, account: String?)
    case setRetention(Retention?)
    case setDiskFloor(Int64?)
    case setNetworkCondition(NetworkCondition)
    case start
    case stop(StopMode, deadline: Duration?)
    case stopAndWait(StopMode, deadline: Duration?)

    case sessions(from: Int, to: Int)
    case sessionsOfGroup(SessionGroup)
    /// The sessions with the staged IDs.
    case stagedSessions
    case sessionIDs
    case findSessionIDs(prefix: String, limit: Int)
    case session(SessionID)
    case items(of: SessionID, from: Int64, limit: Int)

    /// Content for the request that follows.
    case stage(StagedPart)
    /// Adds the staged sessions.
    case add(at: Int?, held: Bool)
    /// Adds the staged sessions, unless the order has changed since this revision.
    case addInOrder(UInt64, at: Int?, held: Bool)
    /// Stores the staged sessions as drafts.
    case saveDrafts
    /// Adds the staged items.
    case addItems(to: SessionReference)
    /// Replaces items with the staged items.
    case replaceItems(ItemSelection, in: SessionReference)
    case apply(SessionOperation, to: SessionReference)
    case applyToGroup(SessionOperation, to: SessionGroup)
    /// Applies an operation to the sessions with the staged IDs.
    case applyToStaged(SessionOperation)
    /// Adds the staged session, whose only item is a stream with this remote name and length. After the response with the session's ID, the client
    /// sends ``StreamFrame``s; each has an empty response.
    case addStream(as: Data, length: Int64?, at: Int?, held: Bool)

    /// The response is followed by ``EventMessage``s until the queue shuts down. Without a revision, only new events are sent.
    case events(since: UInt64?)
    /// Stops the queue's owner, unless it rejects such requests. The owner responds after it has released the storage folder.
    case end

    /// Checks the numbers that the queue itself does not check.
    func check() throws(QueueError) {
        let isPossible =
            switch self {
            case .items(_, _, let limit), .findSessionIDs(_, let limit): limit >= 0
            case .addStream(_, let length?, _, _): length >= 0
            // Longer durations would overflow when added to an instant.
            case .stop(_, let deadline?), .stopAndWait(_, let deadline?): (.zero ... .seconds(Int64.max)).contains(deadline)
            default: true
            }
        guard isPossible else {
            throw QueueError(.invalidRequest, "A number in the request is negative or too large.")
        }
    }

    var isRead: Bool {
        switch self {
        case .owner, .accounts, .account, .status, .remainingUploads, .statistics, .forecast, .storeHealth, .quarantinedCount,
            .quarantined, .sessions, .sessionsOfGroup, .stagedSessions, .sessionIDs, .findSessionIDs, .session, .items, .events, .stage:
            true
        default: false
        }
    }

    var isEnd: Bool { if case .end = self { true } else { false } }
    var isStream: Bool { if case .addStream = self { true } else { false } }

    /// Whether the client decides how long the connection stays open. The owner limits the number of such connections.
    var isOpenEnded: Bool {
        switch self {
        case .events, .addStream: true
        default: false
        }
    }

    /// Whether the request can wait forever, for the queue or for the client. The owner cancels such a request when the client disconnects.
    var isWait: Bool {
        switch self {
        case .events, .stopAndWait, .addStream: true
        default: false
        }
    }
}

/// A response, or one part of a response that contains a long list.
struct ControlResponse<Value: Codable & Sendable>: Codable, Sendable {
    var value: Value?
    /// Whether another part follows.
    var more: Bool?
    var error: QueueError?
}

/// The value in the response to a request that has no result.
struct EmptyResult: Codable, Sendable {}

/// A message with an event. The owner sends these messages after the response to ``ControlRequest/events(since:)``.
struct EventMessage: Codable, Sendable {
    /// Nil after the last event, when the queue was shut down.
    var event: QueueEvent?
}
