public import Foundation
public import TransferCore

/// Why a waiting session does not run: the first of its conditions that is not met. Derived from the present state, never stored.
public enum WaitReason: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The queue is stopped, draining or stopping.
    case queueNotRunning
    /// The store takes no changes, for example because its disk is full, so running sessions were interrupted. They start again as soon as
    /// the store takes changes. The text says what is wrong with the store.
    case storageRefusesChanges(String)
    /// Its last run was interrupted and has not ended within 30 s, for example because a network share does not answer. The session can
    /// start again once that run has ended, or in a new process.
    case lastRunNotEnded
    /// The app stopped it; it goes on once another session was activated, or after a few seconds if there is none.
    case stoppedByApp
    /// Another session was run before its turn and has its slot; this one comes back when that one gives the slot up.
    case displaced(by: SessionID)
    /// The last attempt failed and the next one is due then.
    case retry(at: Date)
    /// The app does not want it to start earlier.
    case notBefore(Date)
    /// Another session has to complete first, or to end; the state is that of the other one.
    case after(SessionID, SessionState)
    /// The account is blocked until a person acts.
    case accountBlocked(TransferError)
    /// None of the account's endpoints is to be bothered before that time: each failed too often, or asked to be left alone. The error is the
    /// last failure there that this process met, if any.
    case endpointsUnavailable(until: Date, TransferError?)
    /// None of the account's endpoints names a transport that this process has.
    case transportMissing(TransportID)
    /// The network is not there, or too expensive for the session, as the app says.
    case networkConstraint(NetworkCondition)
    /// The disk that the queue is stored on has less space than it has to have for anything to start; both in bytes.
    case diskBelowFloor(free: Int64, floor: Int64)
    /// This machine lacks the space or the descriptors that the session needs.
    case noSpace(TransferError)
    /// So many runs were interrupted and have not ended that no further session starts, as each of them keeps threads of this process.
    case runsNotEnded(Int)
    /// In strict order: the session before it is not finished.
    case strictOrder(behind: SessionID)
    /// Another waiting session is before it.
    case order(behind: SessionID)
    /// It is next, and all slots of the queue are in use.
    case queueLimit
    /// It is next, and all slots of its account are in use.
    case accountLimit
    /// It is next, and a paused session keeps the slot that it needs.
    case slotHeld(by: SessionID)

    /// A sentence for people.
    public var description: String {
        switch self {
        case .queueNotRunning: "The queue is not running."
        case .storageRefusesChanges(let problem): "The queue can't store changes, so it was interrupted. \(problem)"
        case .lastRunNotEnded:
            "Its last run was interrupted and has not ended, as a disk, a network share or a transport does not answer. The session starts when that run ends, or after a restart of this process."
        case .stoppedByApp: "It was stopped, and goes on after another session had its turn."
        case .displaced(let id): "Session \(id) was run in its place; it comes back when that one is done."
        case .retry(let date): "The last attempt failed; the next one is due at \(date.formatted(.iso8601))."
        case .notBefore(let date): "It is not to start before \(date.formatted(.iso8601))."
        case .after(let id, let state): "It comes after session \(id), which is \(state.rawValue)."
        case .accountBlocked(let error): "The account is blocked. \(error.message)"
        case .endpointsUnavailable(let date, let error):
            "The account's endpoints failed too often or asked to be left alone; the next attempt is due at \(date.formatted(.iso8601))."
                + (error.map { " \($0.message)" } ?? "")
        case .transportMissing(let id): "This process has no transport named \"\(id)\"."
        case .networkConstraint(.expensive): "The network is expensive, and the session is not to use it."
        case .networkConstraint: "There is no network."
        case .diskBelowFloor(let free, let floor):
            "The disk of the queue has \(free) bytes left; below \(floor) nothing starts. Free some space."
        case .noSpace(let error): "This machine is short of space. \(error.message)"
        case .runsNotEnded(let count):
            "\(count) interrupted runs have not ended, as a disk, a network share or a transport does not answer. Restart this process."
        case .strictOrder(let id): "The queue is strict, and session \(id) before it is not finished."
        case .order(let id): "It is behind session \(id)."
        case .queueLimit: "It is next; all slots of the queue are in use."
        case .accountLimit: "It is next; all slots of its account are in use."
        case .slotHeld(let id): "It is next; the paused session \(id) keeps its slot."
        }
    }
}
