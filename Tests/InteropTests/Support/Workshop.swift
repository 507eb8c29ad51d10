import Foundation
import Logging
import SystemPackage
import TransferCore
import TransferKit
import TransportTUS

/// A temporary folder with local files, a queue and servers in it.
final class Workshop: Sendable {
    let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "interop-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    /// Makes a file whose content repeats nowhere soon.
    func file(_ name: String, size: Int) throws -> FilePath {
        var state = UInt64(size) &+ UInt64(name.utf8.reduce(7) { $0 &* 31 &+ Int($1) })
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

    /// Opens the queue of this workshop with the account "real" at an endpoint. Attempts are repeated at once.
    func openQueue(_ endpoint: String) async throws -> TransferQueue {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        configuration.randomFraction = { 0 }
        let queue = try await TransferQueue(
            storage: .folder(FilePath(folder.appending(path: "store").path)), transports: [TUSTransport()], configuration: configuration)
        try await queue.save(Account("real", endpoints: [.tus(endpoint)]))
        return queue
    }
}
