import Foundation
import Logging
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferKit
import TransportTUS

/// A temporary folder, with a queue, the queue's files, and servers.
final class InteropFixture: Sendable {
    let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "interop-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    /// Creates a file with pseudorandom content, which depends on the name and the size.
    func file(_ name: String, size: Int) throws -> FilePath {
        var state = UInt64(size) &+ UInt64(truncatingIfNeeded: name.utf8.reduce(7) { $0 &* 31 &+ Int($1) })
        var data = Data(capacity: size + 8)
        while data.count < size {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            unsafe withUnsafeBytes(of: state ^ state >> 29) { unsafe data.append(contentsOf: $0) }
        }
        let url = folder.appending(path: name)
        try data.prefix(size).write(to: url)
        return FilePath(url.path)
    }

    func content(_ path: FilePath) throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: path.string))
    }

    /// Opens the queue in the folder, with an account "real" that has one tus endpoint. Retries have no delay.
    func openQueue(_ endpoint: String, settings: [String: String] = [:]) async throws -> TransferQueue {
        try await openQueue(Account("real", endpoints: [Endpoint(transport: .tus, address: endpoint, settings: settings)]))
    }

    /// Opens the queue in the folder, with the given account. Retries have no delay.
    func openQueue(
        _ account: Account, transports: [any Transport] = [TUSTransport()], clock: EngineClock = .system, logger: Logger? = nil
    ) async throws -> TransferQueue {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        if let logger { configuration.logger = logger }
        configuration.randomFraction = { 0 }
        configuration.clock = clock
        let queue = try await TransferQueue(
            storage: .folder(FilePath(folder.appending(path: "store").path)), transports: transports, configuration: configuration)
        try await queue.save(account)
        return queue
    }

    func checkContent(of session: TransferSession, on server: RealServer) async throws {
        for item in try await session.queue.items(of: session.id) {
            let stored = try server.content(
                of: try #require(item.remoteURL), named: String(decoding: item.destination.lastComponent, as: UTF8.self))
            #expect(try stored == content(item.source), "\(item.source)")
        }
    }

    func checkContent(of session: TransferSession, on server: TUSLoopbackServer) async throws {
        for item in try await session.queue.items(of: session.id) where !item.isFolder {
            let id = try #require(item.remoteURL?.split(separator: "/").last)
            let stored = try content(FilePath(folder.appending(path: "server").appending(path: "\(id).bin").path))
            #expect(try stored == content(item.source), "\(item.source)")
            #expect(server.statistics.uploads.contains { $0.id == id && $0.isComplete })
        }
    }

    func loopbackServer(_ options: LoopbackOptions = LoopbackOptions()) -> TUSLoopbackServer {
        TUSLoopbackServer(folder: FilePath(folder.appending(path: "server").path), options: options)
    }
}

/// Checks that each PATCH starts at the offset in the preceding response.
func checkOffsets(_ requests: [RealServer.Request]) {
    var known: [String: String] = [:]
    for request in requests {
        let upload = (request.location ?? request.path ?? "").split(separator: "/").last.map(String.init) ?? ""
        switch request.method {
        case "POST": known[upload] = request.answeredOffset ?? "0"
        case "HEAD": known[upload] = request.answeredOffset
        case "PATCH":
            #expect(request.offset == known[upload], "a PATCH of \(upload)")
            // After a PATCH without a successful response, a HEAD must precede the next PATCH.
            known[upload] = request.status == 204 ? request.answeredOffset : nil
        default: break
        }
    }
}

extension TransferSession {
    func waitUntilSent(_ bytes: Int64) async {
        for await statistics in progress where statistics.bytesSent >= bytes { return }
    }
}

extension QueueEvents {
    /// Waits for the first event for which `pick` returns a value, and returns that value.
    func first<Value>(_ pick: (QueueEvent.Kind) -> Value?) async -> Value? {
        for await event in self {
            if let value = pick(event.kind) { return value }
        }
        return nil
    }
}
