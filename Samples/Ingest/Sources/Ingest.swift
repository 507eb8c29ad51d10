import Foundation
import Hummingbird
import Logging
import ServiceLifecycle
import TransferKit
import TransportTUS

/// A service that accepts files over HTTP, and uploads them to a tus server.
///
///     Ingest SERVER [PORT]
@main
struct Ingest {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard let server = arguments.first else { return print("Usage: Ingest SERVER [PORT]") }
        let port = arguments.dropFirst().first.flatMap { Int($0) } ?? 8080
        let logger = Logger(label: "ingest")

        // During a restart, the new process waits until the old one has released the storage folder.
        let storage = Storage.application("com.example.ingest", ownerTimeout: .seconds(60))
        // Without retention, completed sessions would stay in the queue forever.
        let configuration = QueueConfiguration(maxConcurrentSessions: 4, retention: .count(1_000), logger: logger)
        let queue = try await TransferQueue(storage: storage, transports: [TUSTransport()], configuration: configuration)
        try await queue.save(Account("store", endpoints: [.tus(server)]))

        let web = Application(
            router: routes(queue), configuration: .init(address: .hostname("127.0.0.1", port: port)),
            onServerRunning: { print("Listening on port \($0.localAddress?.port ?? 0)") }, logger: logger)
        // The group stops its services in reverse order: first the server, which completes its requests, and then the queue.
        let group = ServiceGroup(
            services: [QueueService(queue: queue), web], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        try await group.run()
        print("Stopped")
    }

    static func routes(_ queue: TransferQueue) -> Router<BasicRequestContext> {
        let router = Router()
        // Accepts a file. When the client receives the response, the file is on disk, and will be uploaded even after a crash.
        router.put("files/:name") { request, context in
            // The router does not decode `%20`. The queue rejects an empty name, and names such as `..`.
            let name = try context.parameters.require("name").removingPercentEncoding ?? ""
            let body = try await request.body.collect(upTo: 16 << 20)
            do {
                let file = TransferItem.data(Data(body.readableBytesView), as: name)
                let session = try await queue.enqueue(.upload(items: [file], to: "store", name: name))
                return EditedResponse(status: .accepted, response: "\(session.id)\n")
            } catch let error as QueueError where error.code == .invalidRequest {
                throw HTTPError(.badRequest, message: error.message)
            }
        }
        // For a load balancer or a container's health check. A blocked account needs new credentials or a trusted server key.
        router.get("health") { _, _ in
            let isBlocked = await queue.accounts().contains { $0.blockingError != nil }
            let isHealthy = await queue.status().mode == .running && !isBlocked
            return EditedResponse(status: isHealthy ? .ok : .serviceUnavailable, response: isHealthy ? "ok\n" : "unhealthy\n")
        }
        // In the text format of Prometheus. The queue also records metrics with swift-metrics, for the backend that an app passes to
        // `MetricsSystem.bootstrap`.
        router.get("metrics") { _, _ in
            let (status, statistics) = (await queue.status(), try await queue.statistics())
            return """
                ingest_sessions{state="waiting"} \(status.waiting)
                ingest_sessions{state="running"} \(status.running)
                ingest_sessions{state="failed"} \(status.failed)
                ingest_bytes_remaining \(statistics.bytesRemaining)
                ingest_bytes_per_second \(Int(statistics.rate ?? 0))

                """
        }
        return router
    }
}

/// Runs the queue until the service group stops it.
struct QueueService: Service {
    let queue: TransferQueue

    func run() async throws {
        let events = queue.events
        try await queue.start()
        // The loop ends when the service group stops this service.
        for await event in events.cancelOnGracefulShutdown() {
            switch event.kind {
            case .completed(let id): print("\(await name(of: id)) arrived")
            case .failed(let id, let error): print("\(await name(of: id)) failed: \(error.message)")
            case .accountBlocked(let account, let error): print("\(account) is blocked: \(error.message)")
            default: break
            }
        }
        // Interrupts running uploads, and saves their checkpoints. The next launch resumes them.
        await queue.shutdown()
    }

    private func name(of id: SessionID) async -> String {
        (try? await queue.status(of: id).name) ?? "\(id)"
    }
}
