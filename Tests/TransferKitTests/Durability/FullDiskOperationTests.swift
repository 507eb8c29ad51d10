import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// A full disk affects a whole process, so each test runs in its own process.
@Suite(.oneProcessAtATime) struct FullDiskOperationTests {
    private static let names = ["f1", "f2", "f3", "f4", "f5"]
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Most operations apply to the first of five sessions. Three of the sessions run.
    enum Operation: String, CaseIterable, Sendable {
        case run, pause, resume, yield, hold, cancel, remove, retry, block, unblock, drain, interrupt, readFolder

        /// Brings the queue into a state in which the operation is valid.
        func prepare(_ stage: Stage) async throws {
            let queue = stage.queue
            switch self {
            case .resume:
                try await queue.pause(Stage.id("f1"))
                try await stage.waitForStoppingRuns()
            case .retry:
                stage.server.open("f1", failingWith: TransferError(.permanent, .rejected, "The server rejected the file."))
                try await stage.wait(for: "f1", .failed)
                stage.server.close("f1")
            case .unblock:
                var events = queue.events.makeAsyncIterator()
                stage.server.open("f1", failingWith: TransferError(.credentials, .credentialsRejected, "Who are you?"))
                while await queue.account("a")?.blockingError == nil { _ = await events.next() }
                stage.server.close("f1")
            case .readFolder:
                _ = try await queue.enqueue(try stage.request("tree", [try stage.folder("tree", 12)]), held: true)
            default: break
            }
        }

        func perform(_ stage: Stage) async throws {
            let (queue, first) = (stage.queue, Stage.id("f1"))
            switch self {
            case .run: try await queue.run(Stage.id("f5"))
            case .pause: try await queue.pause(first)
            case .resume: try await queue.resume(first)
            case .yield: try await queue.yield(first)
            case .hold: try await queue.hold(first)
            case .cancel: try await queue.cancel(first, discarding: true)
            case .remove: try await queue.remove(first)
            case .retry: try await queue.retry(first)
            case .block: stage.server.open("f1", failingWith: TransferError(.credentials, .credentialsRejected, "Who are you?"))
            case .unblock: try await queue.unblockAccount("a")
            case .drain: try await queue.stop(.drain)
            case .interrupt: try await queue.stop()
            case .readFolder: try await queue.run(Stage.id("tree"))
            }
        }
    }

    @Test(arguments: DiskKind.allCases, Operation.allCases.flatMap { operation in [0, 9_000].map { "\(operation.rawValue) \($0)" } })
    func completesOperationOnceThereIsSpace(_ kind: DiskKind, _ text: String) async throws {
        let disk = try SmallDisk(kind, in: folder.path)
        await #expect(processExitsWith: .success) {
            [root = folder.path.string as String, kind = disk.kind.rawValue as String, text = text as String] in
            let words = text.split(separator: " ").map(String.init)
            let operation = try #require(words.first.flatMap(Operation.init))
            let disk = try #require(DiskKind(rawValue: kind).map { Disk($0, FilePath(root)) })
            let stage = try await Stage.running(Self.names, in: FilePath(root))
            try await operation.prepare(stage)
            let events = stage.queue.events
            try disk.setFreeSpace(words.last.flatMap { Int($0) })
            var isDone = try await Self.isAccepted { try await operation.perform(stage) }
            for name in Self.names { stage.server.open(name) }
            let failure = await events.first { if case .storageFailed(let error) = $0 { error } else { nil } }
            #expect(failure?.code == .storageUnavailable)
            try disk.setFreeSpace(nil)
            if !isDone { isDone = try await Self.isAccepted { try await operation.perform(stage) } }
            try await Self.finish(stage)
            try await Self.check(operation, isDone, stage)
            await stage.queue.shutdown()
        }
    }

    /// Returns whether the queue accepted the operation: false if there was no space, or if the session had already ended.
    private static func isAccepted(_ body: () async throws -> Void) async throws -> Bool {
        do {
            try await body()
            return true
        } catch let error as QueueError where error.code == .storageUnavailable || error.code == .invalidTransition {
            return false
        }
    }

    /// Unblocks the account, starts the queue, and resumes, releases and retries the sessions, until every session is completed or cancelled.
    private static func finish(_ stage: Stage) async throws {
        let queue = stage.queue
        while try await !queue.sessions().allSatisfy({ $0.state == .completed || $0.state == .cancelled }) {
            try await queue.unblockAccount("a")
            try await queue.start()
            for operation in [SessionOperation.resume, .release, .retry] {
                let ids = try await queue.sessions().filter { $0.state != .cancelled }.map(\.id)
                try await queue.apply(operation, to: .sessions(ids))
            }
            stage.clock.advance(by: .seconds(1))
        }
    }

    private static func check(_ operation: Operation, _ isDone: Bool, _ stage: Stage) async throws {
        let states = Dictionary(uniqueKeysWithValues: try await stage.queue.sessions().map { ($0.name, $0.state) })
        var expected = Dictionary(uniqueKeysWithValues: names.map { ($0, SessionState.completed) })
        if operation == .cancel, isDone { expected["f1"] = .cancelled }
        if operation == .remove, isDone { expected["f1"] = nil }
        if operation == .readFolder { expected["tree"] = .completed }
        #expect(states == expected)
        for name in names where expected[name] == .completed {
            let done = try stage.server.uploads(".done").filter { $0.hasPrefix("\(Stage.id(name))") }
            #expect(done.count == 1, "\(name)")
            for upload in done {
                let content = try Data(contentsOf: URL(fileURLWithPath: stage.server.folder.appending(upload).string))
                #expect(content == Stage.content(name, size: 10_000), "\(name)")
            }
        }
        if operation == .readFolder {
            #expect(
                try stage.server.uploads(".done").count { $0.hasPrefix("\(Stage.id("tree"))") } == 24,
                "12 files in the folder, 12 in its subfolder")
        }
        // The queue removes an unfinished upload only after a delay.
        while expected["f1"] != .completed, try stage.server.uploads(".part").contains(where: { $0.hasPrefix("\(Stage.id("f1"))") }) {
            stage.clock.advance(by: .seconds(1))
            _ = await stage.queue.status()
        }
        #expect(try await stage.queue.storeHealth().problems.isEmpty)
    }
}
