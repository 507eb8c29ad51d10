import Dispatch
import Foundation
import SystemPackage
import TransferCore

/// A server from its start to its stop: the listening thread and those of its connections.
final class RunningServer: Sendable {
    let store: UploadStore
    let url: URL
    private let handler: RequestHandler
    private let listener: Listener
    private let threads = DispatchGroup()
    private let connections = Locked(Connections())

    private struct Connections {
        var isStopping = false
        var open: [ObjectIdentifier: Connection] = [:]
    }

    /// Takes up the folder and listens. Blocks.
    init(folder: FilePath, port: UInt16, options: LoopbackOptions, faults: FaultScript, recorder: StatisticsRecorder) throws {
        store = try UploadStore(folder: folder)
        listener = try Listener(port: port)
        let origin = "http://127.0.0.1:\(listener.port)"
        guard let url = URL(string: origin + RequestHandler.root) else { throw LoopbackError("\(origin) is not a URL.") }
        self.url = url
        handler = RequestHandler(store: store, options: options, faults: faults, recorder: recorder, origin: origin)
    }

    /// Serves, on threads of its own.
    func run() {
        handler.order.join(Listener.number) { [listener] in listener.isReadable }
        startThread { [self] in
            var number = Listener.number + 1
            while let connection = listener.accept(number: number, order: handler.order) {
                handler.order.join(number) { connection.isReadable }
                serve(connection)
                number += 1
            }
            handler.order.leave(Listener.number)
        }
    }

    /// Cuts all connections and waits for the threads.
    func stop() async {
        listener.stop()
        let open = connections.withLock { connections in
            connections.isStopping = true
            return connections.open.values
        }
        for connection in open { connection.interrupt() }
        await withCheckedContinuation { continuation in
            threads.notify(queue: .global()) { continuation.resume() }
        }
    }

    private func serve(_ connection: Connection) {
        let isServed = connections.withLock { connections in
            guard !connections.isStopping else { return false }
            connections.open[ObjectIdentifier(connection)] = connection
            return true
        }
        guard isServed else {
            connection.close()
            return handler.order.leave(connection.number)
        }
        startThread { [self] in
            ConnectionLoop(connection: connection, handler: handler).run()
            connections.withLock { $0.open[ObjectIdentifier(connection)] = nil }
        }
    }

    private func startThread(_ body: @escaping @Sendable () -> Void) {
        threads.enter()
        Thread.detachNewThread { [threads] in
            body()
            threads.leave()
        }
    }
}
