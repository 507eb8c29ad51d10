import Foundation
import Locking
import Logging
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite(.oneProcessAtATime) struct StreamKillTests {
    private static let sampleCount = 25

    @Test func flushedDataSurvivesKill() async throws {
        let undisturbed = try TemporaryFolder()
        let killPointCount = Locked(0)
        try await StreamStage(undisturbed.path) { killPointCount.withLock { $0 += 1 } }.play()
        let count = killPointCount.withLock { $0 }
        let isExhaustive = ProcessInfo.processInfo.environment["TRANSFERKIT_DURABILITY"] == "all"
        let distance = isExhaustive ? 1 : max(1, count / Self.sampleCount)
        for killPoint in stride(from: isExhaustive ? 1 : Int.random(in: 1...distance), through: count, by: distance) {
            let folder = try TemporaryFolder()
            await #expect(processExitsWith: .signal(SIGKILL)) { [root = folder.path.string as String, killPoint = killPoint as Int] in
                let killPointCount = Locked(0)
                let stage = try StreamStage(FilePath(root)) {
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
        let stage = try StreamStage(root)
        let queue = try await stage.open()
        let flushed = stage.flushed
        let session = try await queue.sessions().first
        if let stream = queue.unfinishedStreams.first {
            #expect(flushed <= stream.offset && stream.offset <= StreamStage.size, comment)
            #expect(!stage.isEndFlushed, "a stream whose end was flushed needs no producer; \(comment)")
            let writer = try queue.continueStream(stream)
            try await queue.start()
            try await stage.write(from: Int(stream.offset), to: writer)
        } else if let session {
            #expect(session.state == .completed || flushed == StreamStage.size, comment)
            try await queue.start()
        } else {
            #expect(flushed == 0, comment)
            try await queue.start()
            try await stage.stream(on: queue)
        }
        await queue.waitUntilIdle()
        let end = try #require(try await queue.sessions().first, comment)
        #expect(end.state == .completed && end.statistics.bytesDone == Int64(StreamStage.size), comment)
        await queue.shutdown()
        #expect(try stage.arrived() == stage.content, comment)
        try await stage.open().shutdown()
        #expect(stage.spooled == [], comment)
    }
}

/// A queue that sends one stream to a server. A later process can reopen the queue and the server in the same folder.
private struct StreamStage {
    static let size = 9_000
    private static let writeSize = 1_500

    let content = DownloadFixture.content(size)
    private let root: FilePath
    private let reachKillPoint: @Sendable () -> Void
    private var server: FilePath { root.appending("server") }
    private var journal: FilePath { root.appending("journal") }

    init(_ root: FilePath, reachKillPoint: @escaping @Sendable () -> Void = {}) throws {
        self.root = root
        self.reachKillPoint = reachKillPoint
        try FileManager.default.createDirectory(atPath: root.appending("server").string, withIntermediateDirectories: true)
    }

    func open() async throws -> TransferQueue {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        configuration.storeObserver = { [reachKillPoint] step in
            if case .before(let sql) = step, sql.hasPrefix("SELECT") || sql.hasPrefix("PRAGMA") { return }
            reachKillPoint()
        }
        let queue = try await TransferQueue(
            storage: .folder(root.appending("store")), transports: [AppendingTransport(folder: server, reachKillPoint: reachKillPoint)],
            configuration: configuration)
        if await queue.account("a") == nil {
            try await queue.save(Account("a", endpoints: [Endpoint(transport: "appending", address: "folder://a/")]))
        }
        return queue
    }

    func play() async throws {
        let queue = try await open()
        try await queue.start()
        try await stream(on: queue)
        await queue.waitUntilIdle()
        await queue.shutdown()
    }

    func stream(on queue: TransferQueue) async throws {
        // The buffer is so small that the server confirms the first bytes while the last bytes are still being written.
        let (item, writer) = TransferItem.stream(as: try RemotePath("stream"), ahead: 4_000)
        try await queue.enqueue(.upload(items: [item], to: "a"))
        try await write(from: 0, to: writer)
    }

    /// Writes the content from `offset` to its end, and appends each flushed offset to a journal.
    func write(from offset: Int, to writer: StreamWriter) async throws {
        let journal = try FileDescriptor.open(
            journal, .writeOnly, options: [.create, .append], permissions: [.ownerReadWrite])
        for start in stride(from: offset, to: Self.size, by: Self.writeSize) {
            let end = min(start + Self.writeSize, Self.size)
            try await writer.write(content[start..<end])
            reachKillPoint()
            try await writer.flush()
            // The line in the journal survives when the process is killed, because the kernel holds the line.
            _ = try journal.writeAll(Array("\(end)\n".utf8))
            reachKillPoint()
        }
        writer.finish()
        reachKillPoint()
        try await writer.flush()
        _ = try journal.writeAll(Array("end\n".utf8))
        reachKillPoint()
        try journal.close()
    }

    private var lines: [Substring] {
        let text = try? String(contentsOfFile: journal.string, encoding: .utf8)
        return text?.split(separator: "\n") ?? []
    }

    var flushed: Int { lines.compactMap { Int($0) }.last ?? 0 }
    var isEndFlushed: Bool { lines.contains("end") }

    var spooled: [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: root.appending("store").appending("spool").string)) ?? []
    }

    func arrived() throws -> Data? {
        let names = try FileManager.default.contentsOfDirectory(atPath: server.string).filter { $0.hasSuffix(".done") }
        return names.count == 1 ? try Data(contentsOf: URL(filePath: server.appending(names[0]).string)) : nil
    }
}

/// A transport that appends the content of a source to a file. Like an upload on a server, the file survives when the client is killed.
private struct AppendingTransport: Transport {
    let id: TransportID = "appending"
    let folder: FilePath
    let reachKillPoint: @Sendable () -> Void

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let source = try attempt.source
        guard let growth = source.growth else { throw TransferError(.unsupported, .unsupported, "Only streams are sent.") }
        let upload = folder.appending("upload-\(attempt.remotePath)")
        if let done = try? SourceIdentity(ofFileAt: FilePath(upload.string + ".done")) { return TransferReceipt(bytes: done.size) }
        let file = try FileDescriptor.open(upload, .writeOnly, options: [.create, .append], permissions: [.ownerReadWrite])
        defer { try? file.close() }
        var position = try SourceIdentity(of: file, path: upload).size
        guard position >= attempt.checkpoint?.confirmed ?? 0 else {
            throw TransferError(.resumeLost, .uploadGone, "The sent bytes are gone.")
        }
        let content = try FileDescriptor.open(source.path, .readOnly)
        defer { try? content.close() }
        while true {
            reachKillPoint()
            try await reporter.save(Checkpoint(data: Data("upload".utf8), confirmed: position))
            reachKillPoint()
            reporter.report(sent: position, confirmed: position)
            reachKillPoint()
            growth.confirmed(before: position)
            try await growth.waitUntilReadable(at: position)
            let end: Int64
            switch growth.extent {
            case .failed(let error): throw error
            case .complete(position):
                try FileManager.default.moveItem(atPath: upload.string, toPath: upload.string + ".done")
                reachKillPoint()
                return TransferReceipt(bytes: position)
            case .complete(let size), .growing(let size): end = size
            }
            guard end > position else { continue }
            let bytes = try unsafe [UInt8](unsafeUninitializedCapacity: min(1_000, Int(end - position))) { buffer, count in
                count = try unsafe content.read(fromAbsoluteOffset: position, into: UnsafeMutableRawBufferPointer(buffer))
            }
            position += Int64(try file.writeAll(bytes))
        }
    }

    func shutdown() async {}
}
