public import Foundation
public import TransferCore

/// The reason why a waiting session does not run, or why a running session makes no progress: the first unmet condition. The queue derives the
/// reason from the current state, and never stores it.
public enum WaitReason: Hashable, Sendable, Codable, CustomStringConvertible {
    /// The queue is stopped, draining or stopping.
    case queueNotRunning
    /// The queue interrupted the session, or can't start it, because the database accepts no changes, for example because its disk is full. The
    /// session runs as soon as the database accepts changes. The text describes the problem.
    case storageRefusesChanges(String)
    /// The session's last run was interrupted, but did not end within 30 s, for example because a network share does not respond. The
    /// session can start again once that run has ended, or after a restart of the process.
    case lastRunNotEnded
    /// The session yielded its slot. It starts again after another session has started, or after 5 s if no other session can start.
    case yielded
    /// Another session was run ahead of its turn and took this session's slot. This session starts again when the other session releases the slot.
    case displaced(by: SessionID)
    /// The last attempt failed, and the next attempt is due at this time.
    case retry(at: Date)
    /// The session waits for the earliest start time that the app set.
    case notBefore(Date)
    /// The session depends on another session, which is in this state.
    case after(SessionID, SessionState)
    /// The account is blocked until the app or the user acts.
    case accountBlocked(TransferError)
    /// No endpoint of the account may be tried before this time, because each endpoint failed too often or asked to back off. The error is the last
    /// failure of the account's endpoints in this process, if any.
    case endpointsUnavailable(until: Date, TransferError?)
    /// No endpoint of the account has a transport in this process. The ID is the transport of the first endpoint.
    case transportMissing(TransportID)
    /// The network is unavailable, or too expensive for the session, according to the app.
    case networkConstraint(NetworkCondition)
    /// The disk of the storage folder has less free space than the minimum, which is ``QueueStatus/diskFloor``. Both values are in bytes.
    case diskBelowFloor(free: Int64, floor: Int64)
    /// This machine lacks the disk space, memory, threads or file descriptors that the session needs.
    case noSpace(TransferError)
    /// The session is running, but the check of one of its local files, or the reading of a local folder, has taken more than 30 s, for example
    /// because a network share does not respond. Other files of the session may continue. The text names the file or folder.
    case diskNotResponding(String)
    /// No session starts, because too many interrupted runs have not ended, and each of these runs occupies threads of this process. The value is the
    /// number of these runs.
    case runsNotEnded(Int)
    /// The queue is strict, and an earlier session has not finished.
    case strictOrder(after: SessionID)
    /// Another waiting session starts first.
    case order(after: SessionID)
    /// The session is next, but all slots of the queue are in use.
    case queueLimit
    /// The session is next, but all slots of its account are in use.
    case accountLimit
    /// The session is next, but no slot is free, because the paused session with this ID keeps one.
    case slotHeld(by: SessionID)
    /// Only in a fleet, which is a queue of several hosts: no live member (host) may run the session. The text describes the members that may
    /// run it.
    case noHost(String)
    /// Only in a fleet: the member with this name was asked to stop the session, but has not done so yet. The session can start again when
    /// the member gives it back, or when the member's lease (its temporary right to run the session) ends.
    case leased(to: String)

    /// The reason as a sentence for the user. Dates are in the time zone of this machine.
    public var description: String {
        switch self {
        case .queueNotRunning: "The queue is not running."
        case .storageRefusesChanges(let problem): "The queue can't store changes, so the session does not run. \(problem)"
        case .lastRunNotEnded:
            "The last run was interrupted and has not ended, because a disk, a network share or a transport does not respond. The session starts when that run ends, or after a restart of this process."
        case .yielded: "The session yielded its slot. It starts again after another session has started, or if no other session can start."
        case .displaced(let id): "Session \(id) took this session's slot. This session starts again when session \(id) releases the slot."
        case .retry(let date): "The last attempt failed; the next one is due at \(Self.text(of: date))."
        case .notBefore(let date): "The earliest start is \(Self.text(of: date))."
        case .after(let id, let state): "The session waits for session \(id), which is \(state.rawValue)."
        case .accountBlocked(let error): "The account is blocked. \(error.message)"
        case .endpointsUnavailable(let date, let error):
            "The account's endpoints failed too often or asked to back off. The next attempt is due at \(Self.text(of: date))."
                + (error.map { " \($0.message)" } ?? "")
        case .transportMissing(let id): "This process has no transport named \"\(id)\"."
        case .networkConstraint(.expensive): "The network is expensive, and the session may not use it."
        case .networkConstraint: "There is no network."
        case .diskBelowFloor(let free, let floor):
            "The disk of the storage folder has \(free.sizeText) left, and no session starts below \(floor.sizeText). Free some space."
        case .noSpace(let error): "This machine lacks disk space or another resource that the session needs. \(error.message)"
        case .diskNotResponding(let text): text
        case .runsNotEnded(let count):
            "\(count) interrupted runs have not ended, because a disk, a network share or a transport does not respond. Restart this process."
        case .strictOrder(let id): "The queue is strict, and the earlier session \(id) has not finished."
        case .order(let id): "The session waits for its turn after session \(id)."
        case .queueLimit: "The session is next. All slots of the queue are in use."
        case .accountLimit: "The session is next. All slots of its account are in use."
        case .slotHeld(let id): "The session is next. No slot is free, because the paused session \(id) keeps one."
        case .leased(let host):
            "The member \"\(host)\" still has the session. The session can start again when the member gives it back, or when the "
                + "member's lease ends."
        case .noHost(let hosts): "The session may run on \(hosts), and none of these is live and can use the account."
        }
    }

    /// The other session that the reason names; nil if the reason names no session.
    package var session: SessionID? {
        switch self {
        case .displaced(let id), .after(let id, _), .strictOrder(let id), .order(let id), .slotHeld(let id): id
        default: nil
        }
    }

    private static func text(of date: Date) -> String { date.formatted(Date.ISO8601FormatStyle(timeZone: .current)) }
}
