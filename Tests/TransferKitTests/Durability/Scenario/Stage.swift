import Foundation
import Logging
import SystemPackage
import TransferCore
import TransferKit

/// A queue, a server and a clock for a scenario. All files are below one folder, so that a later process can continue the scenario.
final class Stage: Sendable {
    let root: FilePath
    let server: ServerFolder
    let clock = TestClock()
    let queue: TransferQueue

    /// - Parameters:
    ///   - usesTestClock: Whether the queue uses ``clock`` instead of the machine's clock.
    ///   - observer: Called before and after each database statement.
    init(
        _ root: FilePath, ordering: QueueOrdering = .inOrder, retention: Retention = .keepAll, usesTestClock: Bool = true,
        observer: (@Sendable (StoreStep) -> Void)? = nil
    ) async throws {
        self.root = root
        server = try ServerFolder(root.appending("server"))
        var configuration = QueueConfiguration(ordering: ordering, retention: retention)
        configuration.logger.logLevel = .critical
        if usesTestClock { configuration.clock = clock.engineClock }
        configuration.randomFraction = { 1 }
        // The small disks of these tests always have less free space than a queue requires by default.
        configuration.diskFloor = 0
        configuration.storeObserver = observer
        queue = try await TransferQueue(
            storage: .folder(root.appending("store")), transports: [server], configuration: configuration)
    }

    func account(_ name: String, hosts: [String] = []) -> Account {
        Account(name, endpoints: (hosts.isEmpty ? [name] : hosts).map(server.endpoint))
    }

    /// A request that uploads one file. The session and the file have the same name.
    func upload(_ name: String, to account: String = "a", size: Int = 10_000) throws -> SessionRequest {
        try request(name, to: account, [item(name, size: size)])
    }

    /// A request whose session ID depends on the session's name, so that the ID is the same in every process.
    func request(_ name: String, to account: String = "a", _ items: [TransferItem]) throws -> SessionRequest {
        var request = try SessionRequest.upload(items: items, to: account, name: name, context: ["name": name])
        request.id = Self.id(name)
        return request
    }

    /// A file whose content depends on its name.
    func item(_ name: String, size: Int = 10_000) throws -> TransferItem {
        let file = root.appending("file-\(name)")
        if !FileManager.default.fileExists(atPath: file.string) {
            try Self.content(name, size: size).write(to: URL(fileURLWithPath: file.string))
        }
        return TransferItem(file, as: try RemotePath(name))
    }

    /// A folder with `count` small files, and a subfolder with `count` more small files.
    func folder(_ name: String, _ count: Int) throws -> TransferItem {
        let folder = root.appending("folder-\(name)")
        let inner = folder.appending("inner")
        try FileManager.default.createDirectory(atPath: inner.string, withIntermediateDirectories: true)
        for number in 0..<count {
            for file in [folder.appending("\(name)-\(number)"), inner.appending("\(name)-inner-\(number)")] {
                let name = file.lastComponent?.string ?? ""
                try Self.content(name, size: 100).write(to: URL(fileURLWithPath: file.string))
            }
        }
        return TransferItem(folder, as: try RemotePath(name))
    }

    /// A data item whose content depends on its name.
    func dataItem(_ name: String) throws -> TransferItem {
        .data(Self.content(name, size: 10_000), as: try RemotePath(name))
    }

    static func content(_ name: String, size: Int) -> Data {
        let seed = name.utf8.reduce(7) { $0 &* 31 &+ Int($1) }
        return Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8 &+ seed) })
    }

    static func id(_ name: String) -> SessionID {
        var bytes = Array(name.utf8.prefix(16))
        bytes += Array(repeating: 0, count: 16 - bytes.count)
        return SessionID(data: Data(bytes)) ?? SessionID()
    }

    /// The names of the spool files, which contain the bytes of data items.
    func spooled() throws -> Set<String> {
        Set((try? FileManager.default.contentsOfDirectory(atPath: root.appending("store").appending("spool").string)) ?? [])
    }

    /// Creates a queue with a session for each name, and starts the first three sessions. For each of these sessions, the server holds the
    /// file after the first chunk.
    static func running(_ names: [String], in root: FilePath) async throws -> Stage {
        let stage = try await Stage(root)
        try await stage.queue.save(stage.account("a"))
        try await stage.queue.setMaxConcurrentSessions(3)
        let requests = try names.map { name in
            var request = try stage.upload(name)
            // The test clock advances faster than bytes can move, so the default timeout would expire.
            request.options.stallTimeout = .seconds(1_000_000)
            return request
        }
        _ = try await stage.queue.enqueue(requests)
        for name in names { stage.server.close(name) }
        try await stage.queue.start()
        for name in names.prefix(3) { try await stage.server.reached(name) }
        return stage
    }

    /// Returns when the condition holds for the list of all sessions. Checks the list after each event.
    func wait(until isTrue: ([SessionStatus]) -> Bool) async throws {
        var events = queue.events.makeAsyncIterator()
        while true {
            if isTrue(try await queue.sessions()) { return }
            guard await events.next() != nil else { throw CancellationError() }
        }
    }

    func waitForStoppingRuns() async throws {
        try await wait { sessions in !sessions.contains { $0.phase == .ending } }
    }

    func wait(for name: String, _ state: SessionState) async throws {
        try await wait { sessions in sessions.contains { $0.name == name && $0.state == state && $0.phase != .ending } }
    }
}

extension SessionID {
    fileprivate init?(data: Data) {
        let b = [UInt8](data)
        guard b.count == 16 else { return nil }
        self.init(
            uuid: UUID(uuid: (b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15])))
    }
}
