import TransferCore
import TransferKit

/// What a queue under test can be told: as an ``Input``, but a run is named by its session, so that a sequence keeps its sense when parts of it
/// are taken away.
enum ModelEvent: Codable, Sendable {
    case command(Command)
    /// Of the session's last run, or of one before it.
    case report(SessionID, runsAgo: Int, RunEvent.Content)
    /// So many bytes are left on the disk.
    case disk(free: Int64)
    case tick
}

/// Something that happens to a queue under test, some seconds after what happened before.
struct ModelStep: Codable, Sendable {
    enum Kind: Codable, Sendable {
        case event(ModelEvent)
        /// The clock of the day is set forward by so many seconds, or back; the time since the start goes on as it does.
        case clock(Int)
        /// The process is killed, and another one opens the store.
        case restart
        /// The store refuses what follows from these: as if they had never been.
        case undo([ModelEvent])
    }

    var wait: Int
    var kind: Kind
}

/// A whole recorded test: it can be written down, and played again.
struct ModelSequence: Codable, Sendable {
    struct Settings: Codable, Sendable {
        var isStrict = false
        var limit = 1
        var keptCount: Int?
        var keptSeconds: Int?

        var scheduler: Scheduler.Settings {
            var retention = Retention.keepAll
            if let keptCount { retention = .count(keptCount) }
            if let keptSeconds { retention = .age(.seconds(keptSeconds)) }
            return Scheduler.Settings(
                transports: ["memory"], ordering: isStrict ? .strict : .inOrder, sessionLimit: limit, retention: retention, diskFloor: 1_000
            )
        }
    }

    var settings = Settings()
    var steps: [ModelStep] = []
}
