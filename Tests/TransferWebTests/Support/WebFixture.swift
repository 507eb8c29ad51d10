import Foundation
import Logging
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

/// A queue with a control socket, and a web server that reaches the queue through this socket.
final class WebFixture: Sendable {
    let folder: FilePath
    let memory = MemoryTransport()
    let queue: TransferQueue
    let control: ControlServer
    let logger: Logger
    let server: WebServer
    /// The URL that the server printed, with the token.
    let url: String
    let port: UInt16
    var store: FilePath { folder.appending("store") }

    private init(_ prepare: (inout WebServerOptions) -> Void, _ prepareQueue: (inout QueueConfiguration) -> Void) async throws {
        folder = FilePath(NSTemporaryDirectory()).appending("transferkit-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        prepareQueue(&configuration)
        queue = try await TransferQueue(storage: .folder(folder.appending("store")), transports: [memory], configuration: configuration)
        logger = configuration.logger
        control = try ControlServer(for: queue, as: .application, logger: configuration.logger)
        try await queue.save(Account("a", endpoints: [memory.endpoint()]))
        var options = WebServerOptions()
        options.port = 0
        // The tests send more requests than the standard limits allow.
        (options.limits.requestBurst, options.limits.requestsPerSecond) = (1_000_000, 1_000_000)
        prepare(&options)
        server = WebServer(RemoteTransferQueue(folder: folder.appending("store"), timeout: .seconds(60)), options: options)
        url = try await server.start()
        port = UInt16(URLComponents(string: url)?.port ?? 0)
    }

    deinit { try? FileManager.default.removeItem(atPath: folder.string) }

    /// Passes a fixture to a test, and then stops everything, even after an error.
    static func with(
        _ prepare: (inout WebServerOptions) -> Void = { _ in }, queue prepareQueue: (inout QueueConfiguration) -> Void = { _ in },
        _ body: (WebFixture) async throws -> Void
    ) async throws {
        let fixture = try await WebFixture(prepare, prepareQueue)
        do {
            try await body(fixture)
        } catch {
            await fixture.stop()
            throw error
        }
        await fixture.stop()
    }

    private func stop() async {
        await server.stop()
        await control.shutDownQueue()
    }

    func token(_ name: String = "web.token") throws -> String {
        try String(contentsOfFile: store.appending(name).string, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Returns a client that sends a token, or none if the name of the token file is nil.
    func client(_ name: String? = "web.token") throws -> WebClient {
        WebClient(port: port, token: try name.map { try token($0) })
    }

    /// Returns a client with the cookie of a browser that opened the printed URL, and the token of the page's forms.
    func browser(_ name: String = "web.token") async throws -> (client: WebClient, form: String) {
        let login = try await client(nil).get("/login?token=\(token(name))")
        let cookie = String(login.headers["set-cookie"]?.prefix { $0 != ";" } ?? "")
        var client = try client(nil)
        client.headers = ["Cookie": cookie]
        let page = try await client.get("/")
        let form = page.body.split(separator: "name=\"form\" value=\"").dropFirst().first?.prefix { $0 != "\"" } ?? ""
        return (client, String(form))
    }

    func file(_ name: String, size: Int = 1_000) throws -> FilePath {
        let path = folder.appending(name)
        try Data(repeating: 7, count: size).write(to: URL(fileURLWithPath: path.string))
        return path
    }

    /// Adds held sessions with one file each, named `0`, `1` and so on.
    @discardableResult
    func add(_ count: Int, name: (Int) -> String = { "\($0)" }) async throws -> [SessionID] {
        let source = try file("source")
        return try await queue.add(
            (0..<count).map { number in
                try .upload(items: [TransferItem(source, as: "remote-\(UUID().uuidString)")], to: "a", name: name(number))
            }, at: nil, held: true)
    }
}
