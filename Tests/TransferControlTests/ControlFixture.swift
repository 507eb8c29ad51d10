import Foundation
import Logging
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransportTesting

/// A queue with an open control socket, and a client in the same process.
final class ControlFixture: Sendable {
    let folder: FilePath
    let memory = MemoryTransport()
    let queue: TransferQueue
    let server: ControlServer
    var store: FilePath { folder.appending("store") }
    var remote: RemoteTransferQueue { RemoteTransferQueue(folder: store, timeout: .seconds(60)) }

    /// - Parameters:
    ///   - name: The path from the temporary folder to the fixture's folder, which contains the storage folder.
    ///   - timeout: The time after which the server disconnects a client that sends nothing.
    ///   - requestLimit: The maximum size of a client's request in bytes.
    ///   - onStopRequest: Called when a client asks the queue's owner to exit.
    ///   - transport: A replacement for the memory transport, with the same ID.
    ///   - hasBase: Whether the fixture's folder is the queue's base folder.
    init(
        name: String = "transferkit-\(UUID().uuidString)", timeout: Duration = .seconds(60), requestLimit: Int = 256 << 20,
        onStopRequest: (@Sendable () -> Void)? = nil, transport: (any Transport)? = nil, hasBase: Bool = false
    ) async throws {
        folder = FilePath(NSTemporaryDirectory()).pushing(FilePath(name))
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        queue = try await TransferQueue(
            storage: .folder(folder.appending("store"), base: hasBase ? folder : nil), transports: [transport ?? memory],
            configuration: configuration)
        server = try ControlServer(
            for: queue, as: .application, logger: configuration.logger, timeout: timeout, requestLimit: requestLimit,
            checkInterval: .milliseconds(10), onStopRequest: onStopRequest)
        try await queue.save(Account("a", endpoints: [memory.endpoint()]))
    }

    deinit { try? FileManager.default.removeItem(atPath: folder.string) }

    /// Passes a fixture to a test, and then shuts down its queue, even after an error.
    static func with(
        timeout: Duration = .seconds(60), requestLimit: Int = 256 << 20, transport: (any Transport)? = nil,
        _ body: (ControlFixture) async throws -> Void
    ) async throws {
        let fixture = try await ControlFixture(timeout: timeout, requestLimit: requestLimit, transport: transport)
        do {
            try await body(fixture)
        } catch {
            await fixture.server.shutDownQueue()
            throw error
        }
        await fixture.server.shutDownQueue()
    }

    func file(_ name: String, size: Int = 1_000) throws -> FilePath {
        let path = folder.appending(name)
        try Data(repeating: 7, count: size).write(to: URL(fileURLWithPath: path.string))
        return path
    }

    func upload(_ names: String...) throws -> SessionRequest {
        try .upload(names.map { try file($0) }, to: "a")
    }
}
