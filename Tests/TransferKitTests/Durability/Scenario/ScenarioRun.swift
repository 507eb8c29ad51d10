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

/// Plays a scenario: to its end, to learn what it does, or until it is killed at a step of the store.
enum ScenarioRun {
    /// What a scenario does when nothing happens to it.
    struct Reference: Sendable {
        /// What an app sees, at first and after each step.
        var snapshots: [QueueSnapshot]
        /// How many moments there were at which a process can be killed.
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

    /// Plays a scenario until a moment, and dies there, or at its end. For a process of its own.
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
        let told = try ToldEvents(in: root, of: stage.queue)
        defer { withExtendedLifetime(told) {} }
        let journal = try FileDescriptor.open(
            root.appending("journal"), .writeOnly, options: [.create, .append], permissions: [.ownerReadWrite])
        for step in scenario.steps {
            try await step.body(stage)
            // What was handed to the kernel outlives the process.
            _ = try journal.writeAll([UInt8(ascii: ".")])
        }
        kill(getpid(), SIGKILL)
    }

    /// How many steps a killed process had done.
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
