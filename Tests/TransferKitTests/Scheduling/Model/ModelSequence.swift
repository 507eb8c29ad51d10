import TransferCore
import TransferKit

/// The inputs of a queue under test: like ``Input``, but a run is named by its session, so that a sequence stays meaningful when parts of
/// it are removed.
enum ModelEvent: Codable, Sendable {
    case command(Command)
    /// The session's last run, or an earlier one.
    case report(SessionID, runsAgo: Int, RunEvent.Content)
    /// This many bytes are available on the disk.
    case disk(free: Int64)
    case tick
}

/// Something that happens to a queue under test, some seconds after the previous step.
struct ModelStep: Codable, Sendable {
    enum Kind: Codable, Sendable {
        case event(ModelEvent)
        /// Sets the date forward or back by this many seconds; the uptime is not affected.
        case clock(Int)
        /// The process is killed, and another one opens the store.
        case restart
        /// The store refuses the changes from these steps, as if they had never happened.
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
                transports: ["memory"], ordering: isStrict ? .strict : .inOrder, sessionLimit: limit, retention: retention, diskFloor: 1_000
            )
        }
    }

    var settings = Settings()
    var steps: [ModelStep] = []
}
