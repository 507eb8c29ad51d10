import TransferCore
import TransferKit

/// An input for a ``ModelRun``. Unlike an ``Input``, a `ModelEvent` identifies a run by the run's session, so that a sequence remains valid
/// when steps are removed.
enum ModelEvent: Codable, Sendable {
    case command(Command)
    /// A report of the session's last run, or of the run that began `runsAgo` runs earlier.
    case report(SessionID, runsAgo: Int, RunEvent.Content)
    /// From now on, `free` bytes are available on the disk.
    case disk(free: Int64)
    case tick
}

/// A step of a test, `wait` seconds after the previous one.
struct ModelStep: Codable, Sendable {
    enum Kind: Codable, Sendable {
        case event(ModelEvent)
        /// Sets the date forward by a number of seconds, or back if the number is negative. The uptime does not change.
        case clock(Int)
        /// The process is killed, and another process opens the storage folder.
        case restart
        /// The database rejects the changes that these events cause, so the scheduler must undo the changes.
        case undo([ModelEvent])
    }

    var wait: Int
    var kind: Kind
}

/// A complete recorded test that can be saved and replayed.
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
                transports: ["memory"], ordering: isStrict ? .strict : .inOrder, maxConcurrentSessions: limit, retention: retention,
                diskFloor: 1_000
            )
        }
    }

    var settings = Settings()
    var steps: [ModelStep] = []
}
