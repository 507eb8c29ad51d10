import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// `TRANSFERKIT_DURABILITY` selects the kill points: `all` selects all of them, the name of a scenario selects all kill points of that scenario, and
/// a number selects one kill point in each scenario. By default, the tests use a random sample.
@Suite(.oneProcessAtATime) struct KillTests {
    private static let samples = 12

    @Test(arguments: Scenario.allCases) func keepsCompletedStepsAfterKill(_ scenario: Scenario) async throws {
        let undisturbed = try TemporaryFolder()
        let reference = try await ScenarioRun.play(scenario, in: undisturbed.path)
        let killPoints = Self.killPoints(reference.killPoints, of: scenario)
        // Prints the number of kill points, because testing all of them takes a long time.
        print("\(scenario): testing \(killPoints.count) of \(reference.killPoints) kill points")
        for killPoint in killPoints {
            let folder = try TemporaryFolder()
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [root = folder.path.string as String, scenario = scenario.rawValue as String, killPoint = killPoint as Int] in
                guard let scenario = Scenario(rawValue: scenario) else { return }
                try await ScenarioRun.die(at: killPoint, of: scenario, in: FilePath(root))
            }
            try await Self.check(folder.path, scenario, reference, "killed at kill point \(killPoint) of \(scenario)")
        }
    }

    private static func killPoints(_ count: Int, of scenario: Scenario) -> [Int] {
        switch ProcessInfo.processInfo.environment["TRANSFERKIT_DURABILITY"] {
        case "all", scenario.rawValue: return Array(1...count)
        case let number?: return Int(number).map { [$0] } ?? []
        case nil:
            let distance = max(1, count / samples)
            return Array(stride(from: Int.random(in: 1...distance), through: count, by: distance))
        }
    }

    private static func check(
        _ root: FilePath, _ scenario: Scenario, _ reference: ScenarioRun.Reference, _ comment: Comment
    ) async throws {
        let done = ScenarioRun.stepsDone(in: root)
        let stage = try await Stage(root, ordering: scenario.ordering, retention: scenario.retention, usesTestClock: false)
        try await ReceivedEvents.expectInLog(root, stage.queue, comment)
        let snapshot = try await QueueSnapshot.of(stage.queue)
        let step = scenario.steps.indices.contains(done) ? scenario.steps[done] : nil
        let comment: Comment = "\(comment), in \"\(step?.name ?? "the end")\""
        let before = reference.snapshots[done]
        let after = reference.snapshots[min(done + 1, reference.snapshots.count - 1)]
        if step?.isGradual == true {
            expect(snapshot, isBetween: before, after, comment)
        } else {
            #expect(snapshot == before || snapshot == after, comment)
        }
        #expect(try await stage.queue.storeHealth().problems.isEmpty, comment)
        let inspection = try StoreInspection(root.appending("store"))
        try inspection.expectNoContradictions(comment)
        for checkpoint in try inspection.checkpoints() {
            let size = stage.server.size(of: checkpoint.upload, evenIfLost: true)
            #expect(checkpoint.confirmed <= size ?? -1, "a checkpoint covers more than the received bytes; \(comment)")
        }
        #expect(try inspection.count("quarantine") == 0, comment)
        #expect(try stage.spooled() == inspection.spooled(), "the spool differs from the database; \(comment)")
        try await finish(stage, inspection, comment)
    }

    /// Only some of the step's transactions may be complete, so each session must be in a state between `before` and `after`.
    private static func expect(_ snapshot: QueueSnapshot, isBetween before: QueueSnapshot, _ after: QueueSnapshot, _ comment: Comment) {
        #expect(snapshot.sessions.map(\.name) == before.sessions.map(\.name), comment)
        for (index, session) in snapshot.sessions.enumerated() {
            #expect(session.isBetween(before.sessions[index], after.sessions[index]), comment)
        }
    }

    /// Unblocks the accounts, and releases and resumes the sessions, as a user would. Then each session must end or wait for another session.
    private static func finish(_ stage: Stage, _ inspection: StoreInspection, _ comment: Comment) async throws {
        let queue = stage.queue
        for account in await queue.accounts() { try await queue.unblockAccount(account.account.name) }
        try await queue.apply(.release, to: .all)
        try await queue.apply(.resume, to: .all)
        try await queue.start()
        await queue.waitUntilIdle()
        for session in try await queue.sessions() {
            switch session.state {
            case .completed:
                try await expectArrived(session, stage, comment)
            case .cancelled, .failed: break
            case .waiting:
                guard case .after = session.why else {
                    Issue.record("\(session.name) waits: \(session.why?.description ?? "without a reason"); \(comment)")
                    continue
                }
            case .running, .paused, .held, .draft: Issue.record("\(session.name) is \(session.state); \(comment)")
            }
        }
        #expect(try inspection.count("discard") == 0, comment)
        #expect(try stage.spooled() == inspection.spooled(), "the spool differs from the database at the end; \(comment)")
        // If the kill came between the creation of an upload and the storage of its checkpoint, the upload remains. Such an upload is empty.
        let known = Set(try inspection.checkpoints().map { $0.upload + ".part" })
        for upload in try stage.server.uploads(".part").subtracting(known) {
            #expect(stage.server.size(of: String(upload.dropLast(5))) == 0, "\(upload) remains; \(comment)")
        }
        await queue.shutdown()
    }

    private static func expectArrived(_ session: SessionStatus, _ stage: Stage, _ comment: Comment) async throws {
        let items = try await stage.queue.items(of: session.id)
        #expect(items.count == session.statistics.files, "\(session.name); \(comment)")
        #expect(Set(items.map(\.destination)).count == items.count, "duplicate item in \(session.name); \(comment)")
        let done = try stage.server.uploads(".done")
        for item in items {
            #expect(item.state == .completed, "\(item.destination); \(comment)")
            let content = try done.filter { $0.hasPrefix("\(session.id)-\(item.position)-") }.map {
                try Data(contentsOf: URL(fileURLWithPath: stage.server.folder.appending($0).string))
            }
            let name = item.destination.description.split(separator: "/").last.map(String.init) ?? ""
            #expect(content.contains(Stage.content(name, size: Int(item.bytesTotal ?? 0))), "\(item.destination); \(comment)")
        }
    }
}
