import Foundation
import Locking
import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs a scenario to its end, to record it, or until it is killed at a step of the store.
enum ScenarioRun {
    /// A scenario that ran without a kill.
    struct Reference: Sendable {
        /// The visible state, at the start and after each step.
        var snapshots: [QueueSnapshot]
        /// The number of moments at which the process can be killed.
        var moments: Int
    }

    static func play(_ scenario: Scenario, in root: FilePath) async throws -> Reference {
        let moments = Locked(0)
        let stage = try await Stage(root, ordering: scenario.ordering, retention: scenario.retention) { step in
            if isMoment(step) { moments.withLock { $0 += 1 } }
        }
        var snapshots = [QueueSnapshot.empty]
        for step in scenario.steps {
            try await step.body(stage)
            snapshots.append(try await QueueSnapshot.of(stage.queue))
        }
        await stage.queue.shutdown()
        return Reference(snapshots: snapshots, moments: moments.withLock { $0 })
    }

    /// Runs a scenario until a moment or its end, and kills this process, which must be a separate one.
    static func die(at moment: Int, of scenario: Scenario, in root: FilePath) async throws {
        let moments = Locked(0)
        let stage = try await Stage(root, ordering: scenario.ordering, retention: scenario.retention) { step in
            guard isMoment(step) else { return }
            let count = moments.withLock { count in
                count += 1
                return count
            }
            if count == moment { kill(getpid(), SIGKILL) }
        }
        let received = try ReceivedEvents(in: root, of: stage.queue)
        defer { withExtendedLifetime(received) {} }
        let journal = try FileDescriptor.open(
            root.appending("journal"), .writeOnly, options: [.create, .append], permissions: [.ownerReadWrite])
        for step in scenario.steps {
            try await step.body(stage)
            // Written bytes survive the process, because the kernel has them.
            _ = try journal.writeAll([UInt8(ascii: ".")])
        }
        kill(getpid(), SIGKILL)
    }

    /// The number of steps that a killed process completed.
    static func stepsDone(in root: FilePath) -> Int {
        (try? Data(contentsOf: URL(fileURLWithPath: root.appending("journal").string)).count) ?? 0
    }

    private static func isMoment(_ step: StoreStep) -> Bool {
        switch step {
        case .before(let sql): !sql.hasPrefix("SELECT") && !sql.hasPrefix("PRAGMA")
        case .after(let sql): sql.hasPrefix("COMMIT")
        }
    }
}
