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

/// Runs a scenario to its end to record its snapshots, or kills the process at a kill point.
enum ScenarioRun {
    struct Reference: Sendable {
        /// The visible state at the start and after each step.
        var snapshots: [QueueSnapshot]
        var killPoints: Int
    }

    static func play(_ scenario: Scenario, in root: FilePath) async throws -> Reference {
        let killPoints = Locked(0)
        let stage = try await Stage(root, ordering: scenario.ordering, retention: scenario.retention) { step in
            if isKillPoint(step) { killPoints.withLock { $0 += 1 } }
        }
        var snapshots = [QueueSnapshot.empty]
        for step in scenario.steps {
            try await step.body(stage)
            snapshots.append(try await QueueSnapshot.of(stage.queue))
        }
        await stage.queue.shutdown()
        return Reference(snapshots: snapshots, killPoints: killPoints.withLock { $0 })
    }

    /// Runs a scenario up to a kill point or to its end, and then kills this process. Call this function only in a child process.
    static func die(at killPoint: Int, of scenario: Scenario, in root: FilePath) async throws {
        let killPoints = Locked(0)
        let stage = try await Stage(root, ordering: scenario.ordering, retention: scenario.retention) { step in
            guard isKillPoint(step) else { return }
            let count = killPoints.withLock { count in
                count += 1
                return count
            }
            if count == killPoint { kill(getpid(), SIGKILL) }
        }
        let received = try ReceivedEvents(in: root, of: stage.queue)
        defer { withExtendedLifetime(received) {} }
        let journal = try FileDescriptor.open(
            root.appending("journal"), .writeOnly, options: [.create, .append], permissions: [.ownerReadWrite])
        for step in scenario.steps {
            try await step.body(stage)
            // Written bytes survive when the process is killed, because the kernel holds them.
            _ = try journal.writeAll([UInt8(ascii: ".")])
        }
        kill(getpid(), SIGKILL)
    }

    /// The number of steps that a killed process completed.
    static func stepsDone(in root: FilePath) -> Int {
        (try? Data(contentsOf: URL(fileURLWithPath: root.appending("journal").string)).count) ?? 0
    }

    private static func isKillPoint(_ step: StoreStep) -> Bool {
        switch step {
        case .before(let sql): !sql.hasPrefix("SELECT") && !sql.hasPrefix("PRAGMA")
        case .after(let sql): sql.hasPrefix("COMMIT")
        }
    }
}
