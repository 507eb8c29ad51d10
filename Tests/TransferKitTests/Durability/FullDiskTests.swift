import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// A full disk affects a whole process, so each test runs in its own process.
@Suite(.oneProcessAtATime) struct FullDiskTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test(arguments: DiskKind.allCases) func commandIsDurableOrHasNoEffect(_ kind: DiskKind) async throws {
        let disk = try SmallDisk(kind, in: folder.path)
        await #expect(processExitsWith: .success) {
            [root = folder.path.string as String, kind = disk.kind.rawValue as String] in
            let disk = try #require(DiskKind(rawValue: kind).map { Disk($0, FilePath(root)) })
            let stage = try await Stage(FilePath(root))
            let steps = Scenario.arranging.steps + Scenario.additions.dropFirst(2).prefix(6) + Scenario.spooled.dropFirst(2).prefix(4)
            try await Self.makeSources(of: steps, FilePath(root))
            var refusals = 0
            for step in steps {
                let before = try await QueueSnapshot.of(stage.queue)
                let spooled = try stage.spooled()
                // Each round leaves more space, until the step succeeds.
                for room in [0, 1, 3_000, 4_120, 8_300, 16_000, 100_000, nil] {
                    try disk.setFreeSpace(room)
                    do {
                        try await step.body(stage)
                        break
                    } catch let error as QueueError {
                        refusals += 1
                        #expect(error.code == .storageUnavailable, "\(step.name): \(error)")
                        #expect(try await QueueSnapshot.of(stage.queue) == before, "\(step.name)")
                        #expect(try stage.spooled() == spooled, "\(step.name) left bytes in the spool")
                    }
                }
                try disk.setFreeSpace(nil)
            }
            #expect(refusals > steps.count / 2, "too few commands failed because of the full disk")
            let after = try await QueueSnapshot.of(stage.queue)
            await stage.queue.shutdown()
            let reopened = try await Stage(FilePath(root))
            #expect(try await QueueSnapshot.of(reopened.queue) == after)
            #expect(try await reopened.queue.storeHealth().problems.isEmpty)
            await reopened.queue.shutdown()
        }
    }

    /// Creates the local files that the steps need, because the file size limit of ``DiskKind/limited`` would prevent this later.
    private static func makeSources(of steps: [Scenario.Step], _ root: FilePath) async throws {
        let folder = try TemporaryFolder()
        let stage = try await Stage(folder.path)
        for step in steps { try await step.body(stage) }
        await stage.queue.shutdown()
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path.string) where name != "store" && name != "server" {
            try FileManager.default.moveItem(atPath: folder.path.appending(name).string, toPath: root.appending(name).string)
        }
    }

    @Test(arguments: DiskKind.allCases, [0, 1, 2_000, 4_200, 9_000, 17_000, 40_000])
    func continuesOnceThereIsSpace(_ kind: DiskKind, _ room: Int) async throws {
        let disk = try SmallDisk(kind, in: folder.path)
        await #expect(processExitsWith: .success) {
            [root = folder.path.string as String, kind = disk.kind.rawValue as String, room = room as Int] in
            let disk = try #require(DiskKind(rawValue: kind).map { Disk($0, FilePath(root)) })
            let stage = try await Stage.running(Self.names, in: FilePath(root))
            try await Self.fill(disk, room, stage)
            try disk.setFreeSpace(nil)
            try await Self.finish(stage)
            await stage.queue.shutdown()
        }
    }

    @Test(arguments: DiskKind.allCases, [0, 1, 2_000, 4_200, 9_000, 17_000, 40_000])
    func shutsDownOnFullDisk(_ kind: DiskKind, _ room: Int) async throws {
        let disk = try SmallDisk(kind, in: folder.path)
        await #expect(processExitsWith: .success) {
            [root = folder.path.string as String, kind = disk.kind.rawValue as String, room = room as Int] in
            let disk = try #require(DiskKind(rawValue: kind).map { Disk($0, FilePath(root)) })
            var stage = try await Stage.running(Self.names, in: FilePath(root))
            try await Self.fill(disk, room, stage)
            await stage.queue.shutdown()
            try disk.setFreeSpace(nil)
            stage = try await Stage(FilePath(root))
            #expect(try await stage.queue.sessions().count == Self.names.count)
            #expect(try await stage.queue.storeHealth().problems.isEmpty)
            try await stage.queue.start()
            try await Self.finish(stage)
            await stage.queue.shutdown()
        }
    }

    @Test(arguments: [DiskKind.mounted], (0..<120).map { $0 * 1_100 })
    func createsDatabaseOnceThereIsSpace(_ kind: DiskKind, _ room: Int) async throws {
        let disk = try SmallDisk(kind, in: folder.path)
        await #expect(processExitsWith: .success) {
            [root = folder.path.string as String, kind = disk.kind.rawValue as String, room = room as Int] in
            let disk = try #require(DiskKind(rawValue: kind).map { Disk($0, FilePath(root)) })
            try disk.setFreeSpace(room)
            do {
                let stage = try await Stage(FilePath(root))
                do {
                    try await stage.queue.save(stage.account("a"))
                } catch {
                    // Without a shutdown, the database would stay open for some time after the last use of the queue.
                    await stage.queue.shutdown()
                    throw error
                }
                await stage.queue.shutdown()
            } catch let error as QueueError {
                #expect(error.code == .storageUnavailable)
            }
            try disk.setFreeSpace(nil)
            let stage = try await Stage(FilePath(root))
            try await stage.queue.save(stage.account("a"))
            #expect(try await stage.queue.storeHealth().problems.isEmpty)
            await stage.queue.shutdown()
        }
    }

    /// The queue deletes the rows of a large session in batches, and each batch needs space.
    @Test(arguments: DiskKind.allCases) func deletesLargeSessionOnceThereIsSpace(_ kind: DiskKind) async throws {
        let disk = try SmallDisk(kind, in: folder.path)
        await #expect(processExitsWith: .success) {
            [root = folder.path.string as String, kind = disk.kind.rawValue as String] in
            let disk = try #require(DiskKind(rawValue: kind).map { Disk($0, FilePath(root)) })
            let stage = try await Stage(FilePath(root))
            try await stage.queue.save(stage.account("a"))
            let item = try stage.item("many")
            let many = Array(repeating: item, count: QueueStore.maximumRowsPerSweep + 2_000)
            let session = try await stage.queue.enqueue(try stage.request("large", many))
            await stage.queue.shutdown()
            let reopened = try await Stage(FilePath(root))
            try disk.setFreeSpace(150_000)
            // The removal itself only marks the session, which needs hardly any space.
            try await reopened.queue.remove(session.id)
            await reopened.clock.waitForSleep(of: .seconds(30))
            #expect(await reopened.queue.sessionIDs().isEmpty)
            try disk.setFreeSpace(nil)
            reopened.clock.advance(by: .seconds(30))
            await reopened.queue.deferredDeletion.waitUntilDone()
            #expect(try StoreInspection(FilePath(root).appending("store")).count("file") == 0)
            await reopened.queue.shutdown()
        }
    }

    private static let names = ["f1", "f2", "f3", "f4", "f5"]

    /// Fills the disk except for `room` bytes, makes the server continue the uploads, and waits until the queue reports the full disk.
    private static func fill(_ disk: Disk, _ room: Int, _ stage: Stage) async throws {
        let events = stage.queue.events
        try disk.setFreeSpace(room)
        for name in names { stage.server.open(name) }
        let failure = await events.first { if case .storageFailed(let error) = $0 { error } else { nil } }
        #expect(failure?.code == .storageUnavailable)
        #expect(try await stage.queue.sessions().count == names.count)
        #expect(await stage.queue.status().mode == .running)
    }

    private static func finish(_ stage: Stage) async throws {
        while try await !stage.queue.sessions().allSatisfy({ $0.state == .completed }) { stage.clock.advance(by: .seconds(1)) }
        for name in names {
            let done = try stage.server.uploads(".done").filter { $0.hasPrefix("\(Stage.id(name))") }
            #expect(done.count == 1)
            for upload in done {
                let content = try Data(contentsOf: URL(fileURLWithPath: stage.server.folder.appending(upload).string))
                #expect(content == Stage.content(name, size: 10_000))
            }
        }
    }
}
