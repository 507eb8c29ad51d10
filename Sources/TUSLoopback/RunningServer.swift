import Foundation
import HummingbirdCore
import Logging
import NIOCore
import NIOPosix
import ServiceLifecycle
import TransferCore

/// A server from its start to its stop.
final class RunningServer: Sendable {
    let store: UploadStore
    let url: URL
    private let group: ServiceGroup
    private let task: Task<Void, any Error>
    private let connections: OpenRequests

    /// Starts to listen, and returns when it does.
    init(port: UInt16, handler: RequestHandler) async throws {
        let connections = OpenRequests()
        // A server for tests has nothing to say beside its answers.
        let logger = Logger(label: "tus-loopback", factory: { _ in SwiftLogNoOpLogHandler() })
        let (ports, started) = AsyncThrowingStream.makeStream(of: Int.self)
        let handlers: @Sendable () -> [any RemovableChannelHandler] = { [ArrivalHandler(handler.order), SocketEndHandler()] }
        let server = try HTTPServerBuilder.http1(configuration: .init(additionalChannelHandlers: handlers()))
            .buildServer(
                configuration: ServerConfiguration(address: .hostname("127.0.0.1", port: Int(port))),
                // One loop for all connections; see ArrivalOrder.
                eventLoopGroup: MultiThreadedEventLoopGroup.singleton.next(), logger: logger,
                responder: { request, writer, channel in
                    let connection = Connection(channel)
                    try connections.insert(connection)
                    defer { connections.remove(connection) }
                    try await handler.serve(Exchange(request, writer, on: connection))
                },
                onServerRunning: { listener in
                    handler.order.listen(at: listener)
                    // Were it to fail, the listener is closed already, and there is nothing to end.
                    try? await listener.eventLoop.submit {
                        try listener.pipeline.syncOperations.addHandler(SocketEndHandler(), position: .first)
                    }.get()
                    started.yield(listener.localAddress?.port ?? Int(port))
                })
        let group = ServiceGroup(configuration: ServiceGroupConfiguration(services: [server], logger: logger))
        task = Task {
            do {
                try await group.run()
                started.finish()
            } catch {
                started.finish(throwing: error)
                throw error
            }
        }
        var iterator = ports.makeAsyncIterator()
        let origin: String
        do {
            guard let bound = try await iterator.next() else { throw CancellationError() }
            origin = "http://127.0.0.1:\(bound)"
        } catch {
            throw LoopbackError("The server can't listen at 127.0.0.1:\(port): \(error).")
        }
        guard let url = URL(string: origin + RequestHandler.root) else { throw LoopbackError("\(origin) is not a URL.") }
        self.url = url
        self.group = group
        self.connections = connections
        store = handler.store
    }

    /// Cuts all connections, and returns when what they brought is stored.
    func stop() async {
        connections.stop()
        await group.triggerGracefulShutdown()
        // What it throws was told at the start, or the connections are gone anyway.
        try? await task.value
    }
}
