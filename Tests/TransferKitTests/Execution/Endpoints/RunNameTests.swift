import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The remote names clash only after the account gets an endpoint whose server identifies files by their names.
@Suite struct RunNameTests {
    private struct NamingTransport: Transport, FileNaming {
        let memory = MemoryTransport(id: "naming")
        var id: TransportID { memory.id }

        func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
            options.overwrite == .rename ? .bothKept : .replaced
        }

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            try await memory.perform(attempt, reporting: reporter)
        }

        func shutdown() async {}
    }

    private let fixture: QueueFixture
    private let naming = NamingTransport()

    init() throws {
        fixture = try QueueFixture()
    }

    private func item(_ path: String, as name: String? = nil) throws -> TransferItem {
        TransferItem(fixture.folder.path.pushing(FilePath(path)), as: try name.map { try RemotePath($0) })
    }

    /// Runs a session whose account got the given endpoints after `enqueue`. Returns the session's status, and the errors of its items by remote
    /// name.
    private func run(at endpoints: [Endpoint], options: SessionOptions = SessionOptions()) async throws -> (SessionStatus, [String: String])
    {
        for path in ["one/clips/clip.mov", "one/clips/a/b.mov", "two/clips/clip.mov", "one/day/c.mov", "two/d.mov"] {
            let file = fixture.folder.path.pushing(FilePath(path))
            try FileManager.default.createDirectory(atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
            _ = try fixture.folder.file(path, size: 10)
        }
        let queue = try await fixture.open(transports: [fixture.memory, naming])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint()]))
        let items = try [
            item("two/d.mov", as: "day/1"), item("two/d.mov", as: "day/2"), item("one/clips"), item("two/clips"), item("one/day"),
            item("two/d.mov", as: "day/c.mov"), item("one/day/c.mov", as: "x"),
            item("two/d.mov", as: "x"), item("two/d.mov"),
        ]
        let session = try await queue.enqueue(.upload(items: items, to: "a", options: options))
        try await queue.save(Account("a", endpoints: endpoints))
        try await queue.start()
        _ = try? await session.value
        let status = try await session.status
        var failures: [String: String] = [:]
        for item in try await queue.items(of: session.id) { failures[item.destination.description] = item.error?.message }
        await queue.shutdown()
        return (status, failures)
    }

    /// If the hash value of a name covered only its first bytes, comparing these names would take half an hour.
    @Test(.timeLimit(.minutes(5))) func comparesManyNamesWithLongCommonPrefix() {
        var names = RemoteNames()
        let folder = String(repeating: "a", count: 100)
        var clashes = 0
        for number in 0..<100_000 where names.add(Data("\(folder)\(number)".utf8), FilePath("/a/\(number)"), isFolder: false) != nil {
            clashes += 1
        }
        #expect(clashes == 0)
        let clash = names.add(Data("\(folder)7".utf8), "/b", isFolder: false)
        #expect(clash?.description.hasPrefix("/a/7 and /b have") == true)
    }

    @Test func neverReplacesFilesOfSession() async throws {
        let (status, failures) = try await run(at: [naming.memory.endpoint()])
        #expect(status.state == .failed)
        #expect(failures.keys.sorted() == ["clips/a/b.mov", "clips/clip.mov", "day/1", "day/2", "day/c.mov", "x"])
        #expect(naming.memory.attempts.map(\.path.description) == ["d.mov"])
        let message = try #require(failures["clips/clip.mov"])
        for words in ["one/clips and ", "two/clips have the same remote name, \"clips\"", "memory", "in a new session"] {
            #expect(message.contains(words), "\(message)")
        }
        #expect(failures["day/c.mov"]?.contains("inside \"day\"") == true)
    }

    /// While the queue reads a folder, the session has the folder both as an item to expand and as the folder of the files that the queue has already
    /// read. These two must not clash.
    @Test func sendsFilesOfFolderWhileQueueReadsFolder() async throws {
        let tree = try FolderTree(fixture.folder.path.appending("tree"))
        for number in 0..<1_100 { try tree.file("\(number)", "x") }
        try tree.file("z/last", "y")
        let gate = ThreadGate()
        let slow = tree.path("z")
        let queue = try await fixture.open(transports: [naming], localReadObserver: { if $0 == slow { gate.block() } })
        try await queue.save(Account("a", endpoints: [naming.memory.endpoint()]))
        let session = try await queue.enqueue(.upload([tree.root], to: "a"))
        let events = queue.events
        try await queue.start()
        await gate.waitForBlockedThreads(1)
        for await event in events {
            if case .itemFailed(_, _, let error) = event.kind { Issue.record("A file failed: \(error)") }
            if case .itemCompleted = event.kind { break }
        }
        gate.open(1)
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }

    @Test func usesEndpointThatKeepsAllFiles() async throws {
        let (status, failures) = try await run(at: [naming.memory.endpoint(host: "naming"), fixture.memory.endpoint()])
        #expect(status.state == .completed && failures.isEmpty, "\(failures)")
        #expect(naming.memory.attempts.map(\.path.description) == ["d.mov"])
        #expect(fixture.memory.attempts.count == 9)
    }

    @Test func sendsClashingFilesIfPolicyKeepsBoth() async throws {
        let (status, failures) = try await run(at: [naming.memory.endpoint()], options: SessionOptions(overwrite: .rename))
        #expect(status.state == .completed && failures.isEmpty, "\(failures)")
        #expect(naming.memory.attempts.count == 10)
    }
}
