import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The disk fills up: files can't grow beyond a limit of the process (setrlimit(2), RLIMIT_FSIZE), so each test is in one of its own.
@Suite struct FullDiskTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    @Test func aCommandIsDurableOrNeverHappened() async throws {
        await #expect(processExitsWith: .success) { [root = folder.path.string as String] in
            let disk = LimitedDisk(FilePath(root))
            let stage = try await Stage(FilePath(root))
            let steps = Scenario.arranging.steps
            for name in Scenario.arrangedNames { _ = try stage.upload(name) }
            var refusals = 0
            for step in steps {
                let before = try await QueueSnapshot.of(stage.queue)
                // A little room more each time, until the step can be done.
                for room in [0, 1, 3_000, 4_120, 8_300, 16_000, 100_000] {
                    disk.leave(room)
                    do {
                        try await step.body(stage)
                        break
                    } catch let error as QueueError {
                        refusals += 1
                        #expect(error.code == .storageUnavailable, "\(step.name)")
                        // Questions are answered all the same.
                        #expect(try await QueueSnapshot.of(stage.queue) == before, "\(step.name)")
                    }
                }
                disk.leave(nil)
            }
            #expect(refusals > steps.count, "the disk was never full")
            let after = try await QueueSnapshot.of(stage.queue)
            await stage.queue.shutdown()
            let again = try await Stage(FilePath(root))
            #expect(try await QueueSnapshot.of(again.queue) == after)
            #expect(try await again.queue.storeHealth().problems.isEmpty)
            await again.queue.shutdown()
        }
    }

    @Test(arguments: [0, 1, 2_000, 4_200, 9_000, 17_000, 40_000]) func aQueueGoesOnOnceThereIsRoom(_ room: Int) async throws {
        await #expect(processExitsWith: .success) { [root = folder.path.string as String, room = room as Int] in
            let disk = LimitedDisk(FilePath(root))
            let stage = try await Self.running(FilePath(root))
            try await Self.fill(disk, room, stage)
            disk.leave(nil)
            try await Self.finish(stage)
            await stage.queue.shutdown()
        }
    }

    @Test(arguments: [0, 1, 2_000, 4_200, 9_000, 17_000, 40_000]) func aQueueOnAFullDiskCanBeShutDown(_ room: Int) async throws {
        await #expect(processExitsWith: .success) { [root = folder.path.string as String, room = room as Int] in
            let disk = LimitedDisk(FilePath(root))
            var stage = try await Self.running(FilePath(root))
            try await Self.fill(disk, room, stage)
            await stage.queue.shutdown()
            disk.leave(nil)
            stage = try await Stage(FilePath(root))
            #expect(try await stage.queue.sessions().count == Self.names.count)
            #expect(try await stage.queue.storeHealth().problems.isEmpty)
            try await stage.queue.start()
            try await Self.finish(stage)
            await stage.queue.shutdown()
        }
    }

    @Test(arguments: [0, 50, 600, 4_096, 5_000, 20_000, 33_000, 60_000, 100_000])
    func aStoreThatCannotBeMadeIsMadeOnceThereIsRoom(_ room: Int) async throws {
        await #expect(processExitsWith: .success) { [root = folder.path.string as String, room = room as Int] in
            let disk = LimitedDisk(FilePath(root))
            disk.limit(room)
            do {
                let stage = try await Stage(FilePath(root))
                try await stage.queue.save(stage.account("a"))
                await stage.queue.shutdown()
            } catch let error as QueueError {
                #expect(error.code == .storageUnavailable)
            }
            disk.leave(nil)
            let stage = try await Stage(FilePath(root))
            try await stage.queue.save(stage.account("a"))
            #expect(try await stage.queue.storeHealth().problems.isEmpty)
            await stage.queue.shutdown()
        }
    }

    private static let names = ["f1", "f2", "f3", "f4", "f5"]

    /// A queue that runs, each session held after its first chunk.
    private static func running(_ root: FilePath) async throws -> Stage {
        let stage = try await Stage(root)
        try await stage.queue.save(stage.account("a"))
        try await stage.queue.setSessionLimit(3)
        let requests = try names.map { name in
            var request = try stage.upload(name)
            // Time is made to pass faster than bytes can move.
            request.options.stallTimeout = .seconds(1_000_000)
            return request
        }
        _ = try await stage.queue.enqueue(requests)
        for name in names { stage.server.close(name) }
        try await stage.queue.start()
        for name in names.prefix(3) { try await stage.server.reached(name) }
        return stage
    }

    /// Takes the disk away, and lets the sessions go on.
    private static func fill(_ disk: LimitedDisk, _ room: Int, _ stage: Stage) async throws {
        let events = stage.queue.events
        disk.leave(room)
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

/// How far files of this process may grow.
struct LimitedDisk {
    private let log: FilePath

    /// - Parameter root: What holds the folder "store", whose write-ahead log is the file that grows.
    init(_ root: FilePath) {
        log = root.appending("store").appending("queue.sqlite-wal")
        // Otherwise the first write that fails ends the process.
        _ = signal(SIGXFSZ, SIG_IGN)
    }

    /// Leaves the log so many bytes to grow; nil for as many as it likes.
    func leave(_ room: Int?) {
        let size = (try? FileManager.default.attributesOfItem(atPath: log.string)[.size] as? Int) ?? 0
        limit(room.map { size + $0 })
    }

    func limit(_ size: Int?) {
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
        #else
            let resource = RLIMIT_FSIZE
        #endif
        var limits = rlimit()
        guard unsafe getrlimit(resource, &limits) == 0 else { return }
        limits.rlim_cur = size.map { rlim_t($0) } ?? limits.rlim_max
        let result = unsafe setrlimit(resource, &limits)
        #expect(result == 0)
    }
}
