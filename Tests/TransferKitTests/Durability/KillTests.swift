import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// The process is killed at the steps of the store: before each statement and each commit, and after each commit.
///
/// Tries all steps if `TRANSFERKIT_DURABILITY` is `all`, those of a scenario if it is its name, one step of each scenario if it is a
/// number, and otherwise a sample that varies between runs.
@Suite(.oneProcessAtATime) struct KillTests {
    private static let samples = 20

    @Test(arguments: Scenario.allCases) func keepsCompletedStepsAfterKill(_ scenario: Scenario) async throws {
        let undisturbed = try TemporaryFolder()
        let reference = try await ScenarioRun.play(scenario, in: undisturbed.path)
        let moments = Self.moments(reference.moments, of: scenario)
        // Print the progress, because trying all moments takes long.
        print("\(scenario): \(moments.count) of \(reference.moments) moments")
        for moment in moments {
            let folder = try TemporaryFolder()
            await #expect(processExitsWith: .signal(SIGKILL)) {
                [root = folder.path.string as String, scenario = scenario.rawValue as String, moment = moment as Int] in
                guard let scenario = Scenario(rawValue: scenario) else { return }
                try await ScenarioRun.die(at: moment, of: scenario, in: FilePath(root))
            }
            try await Self.check(folder.path, scenario, reference, "killed at moment \(moment) of \(scenario)")
        }
    }

    private static func moments(_ count: Int, of scenario: Scenario) -> [Int] {
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
        let stage = try await Stage(root, ordering: scenario.ordering, retention: scenario.retention, isTimed: false)
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
            #expect(checkpoint.confirmed <= size ?? -1, "a checkpoint beyond the received bytes; \(comment)")
        }
        #expect(try inspection.count("quarantine") == 0, comment)
        #expect(try stage.spooled() == inspection.spooled(), "bytes from memory; \(comment)")
        try await finish(stage, inspection, comment)
    }

    /// Each part of a step with several transactions may be done or not. But nothing else has changed, and no existing file is gone.
    private static func expect(_ snapshot: QueueSnapshot, isBetween before: QueueSnapshot, _ after: QueueSnapshot, _ comment: Comment) {
        #expect(snapshot.sessions.map(\.name) == before.sessions.map(\.name), comment)
        for (index, session) in snapshot.sessions.enumerated() {
            #expect(session.isBetween(before.sessions[index], after.sessions[index]), comment)
        }
    }

    /// After the operations of a user, all sessions end, and only unavoidable remains are left on the server.
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
                    Issue.record("\(session.name) waits: \(session.why?.description ?? "for nothing"); \(comment)")
                    continue
                }
            case .running, .paused, .held: Issue.record("\(session.name) is \(session.state); \(comment)")
            }
        }
        #expect(try inspection.count("discard") == 0, comment)
        #expect(try stage.spooled() == inspection.spooled(), "bytes from memory at the end; \(comment)")
        // An upload that was created just before the kill may remain, because the queue did not know it. But no byte was sent to it.
        let known = Set(try inspection.checkpoints().map { $0.upload + ".part" })
        for upload in try stage.server.uploads(".part").subtracting(known) {
            #expect(stage.server.size(of: String(upload.dropLast(5))) == 0, "\(upload) is left; \(comment)")
        }
        await queue.shutdown()
    }

    /// All items of a completed session are on the server, once in the session, with the content that belongs to their names.
    private static func expectArrived(_ session: SessionStatus, _ stage: Stage, _ comment: Comment) async throws {
        let items = try await stage.queue.items(of: session.id)
        #expect(items.count == session.statistics.files, "\(session.name); \(comment)")
        #expect(Set(items.map(\.destination)).count == items.count, "an item twice in \(session.name); \(comment)")
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
