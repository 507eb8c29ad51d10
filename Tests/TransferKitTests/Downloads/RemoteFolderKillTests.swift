import Foundation
import Locking
import Logging
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite(.oneProcessAtATime) struct RemoteFolderKillTests {
    private static let samples = 25

    @Test func killDoesNotLoseOrRepeatFiles() async throws {
        let undisturbed = try TemporaryFolder()
        let killPointCount = Locked(0)
        try await FolderStage(undisturbed.path) { killPointCount.withLock { $0 += 1 } }.play()
        let count = killPointCount.withLock { $0 }
        let isExhaustive = ProcessInfo.processInfo.environment["TRANSFERKIT_DURABILITY"] == "all"
        let distance = isExhaustive ? 1 : max(1, count / Self.samples)
        for killPoint in stride(from: isExhaustive ? 1 : Int.random(in: 1...distance), through: count, by: distance) {
            let folder = try TemporaryFolder()
            await #expect(processExitsWith: .signal(SIGKILL)) { [root = folder.path.string as String, killPoint = killPoint as Int] in
                let killPointCount = Locked(0)
                let stage = try FolderStage(FilePath(root)) {
                    let number = killPointCount.withLock { killPointCount in
                        killPointCount += 1
                        return killPointCount
                    }
                    if number == killPoint { kill(getpid(), SIGKILL) }
                }
                try await stage.play()
                kill(getpid(), SIGKILL)
            }
            try await Self.check(folder.path, "killed at kill point \(killPoint)")
        }
    }

    private static func check(_ root: FilePath, _ comment: Comment) async throws {
        let stage = try FolderStage(root)
        let queue = try await stage.open()
        if try await queue.sessions().isEmpty { try await stage.enqueue(on: queue) }
        let id = try #require(try await queue.sessions().first).id
        let known = Set(
            try await queue.items(of: id, from: 0, limit: 5_000).filter { !$0.isFolder }.map { item in
                item.destination.description.split(separator: "/").dropLast().joined(separator: "/")
            })
        try await queue.start()
        await queue.waitUntilIdle()
        let status = try await queue.status(of: id)
        #expect(status.state == .completed, comment)
        #expect(status.statistics.files == stage.contents.count && status.statistics.filesDone == stage.contents.count, comment)
        #expect(status.statistics.bytesTotal == status.statistics.bytesDone, comment)
        let items = try await queue.items(of: id, from: 0, limit: 5_000)
        let received = items.filter { $0.state != .skipped }
        #expect(received.map(\.destination.description).sorted() == stage.contents.keys.sorted(), comment)
        // The queue skips the 2,100 links.
        #expect(received.compactMap(\.error) == [] && items.count == received.count + 2_100, comment)
        // Only the last folder with stored files may be listed again, because its listing may have been incomplete.
        #expect(Set(stage.memory.listings.map(\.description)).intersection(known).count <= 1, comment)
        await queue.shutdown()
        for (name, content) in stage.contents {
            #expect(try Data(contentsOf: URL(filePath: stage.target.pushing(FilePath(name)).string)) == content, comment)
        }
        let names = try FileManager.default.subpathsOfDirectory(atPath: stage.target.string).filter { !stage.folders.contains($0) }
        #expect(names.sorted() == stage.contents.keys.sorted(), comment)
        try StoreInspection(root.appending("store")).expectNoContradictions(comment)
    }
}

/// A queue that downloads two remote folders. A later process can open the same queue.
private struct FolderStage {
    let memory = MemoryTransport(chunkSize: 1_000)
    let target: FilePath
    let contents: [String: Data]
    let folders: Set<String> = ["trip", "trip/a", "trip/a/in", "trip/b", "other"]
    private let root: FilePath
    private let reachKillPoint: @Sendable () -> Void

    /// - Parameter reachKillPoint: Called at each point at which a test may kill the process.
    init(_ root: FilePath, reachKillPoint: @escaping @Sendable () -> Void = {}) throws {
        self.root = root
        self.reachKillPoint = reachKillPoint
        target = root.appending("target")
        try FileManager.default.createDirectory(atPath: target.string, withIntermediateDirectories: true)
        let names = ["trip/1", "trip/2", "trip/a/1", "trip/a/in/1", "trip/b/1", "trip/b/2", "other/1"]
        contents = Dictionary(uniqueKeysWithValues: names.enumerated().map { ($1, DownloadFixture.content(500 + 300 * $0, seed: $0)) })
        // The links need more rows than one transaction stores, so a kill may leave a partly stored folder.
        for number in 0..<2_100 { memory.provideLink("trip/b/link \(number)", to: "elsewhere") }
        // The modification time is fixed, so that the next process recognizes the files as unchanged.
        for name in names { memory.provide(contents[name] ?? Data(), as: name, modificationTime: 1_000_000_000) }
    }

    func open() async throws -> TransferQueue {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        configuration.storeObserver = { [reachKillPoint] step in
            if case .before(let sql) = step, sql.hasPrefix("SELECT") || sql.hasPrefix("PRAGMA") { return }
            reachKillPoint()
        }
        let queue = try await TransferQueue(
            storage: .folder(root.appending("store")), transports: [WatchedLister(memory: memory, reachKillPoint: reachKillPoint)],
            configuration: configuration)
        if await queue.account("a") == nil { try await queue.save(Account("a", endpoints: [memory.endpoint()])) }
        return queue
    }

    @discardableResult
    func enqueue(on queue: TransferQueue) async throws -> TransferSession {
        // The queue learns only during the download that the second item is a folder.
        let items: [TransferItem] = [.remoteFolder(try RemotePath("trip")), .remote(try RemotePath("other"))]
        return try await queue.enqueue(.download(items: items, from: "a", to: target))
    }

    func play() async throws {
        let queue = try await open()
        let session = try await enqueue(on: queue)
        try await queue.start()
        _ = try await session.value
        await queue.waitUntilIdle()
        await queue.shutdown()
    }
}

private struct WatchedLister: FolderListing {
    let id = TransportID(rawValue: "memory")
    let memory: MemoryTransport
    let reachKillPoint: @Sendable () -> Void

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try await memory.perform(attempt, reporting: reporter)
    }

    func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
        reachKillPoint()
        try await memory.list(attempt) { entries in
            reachKillPoint()
            try await receive(entries)
            reachKillPoint()
        }
        reachKillPoint()
    }

    func shutdown() async {}
}
