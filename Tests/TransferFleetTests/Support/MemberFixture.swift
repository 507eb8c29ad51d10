import Crypto
import Foundation
import Logging
import ProcessFixture
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferFleet
import TransferKit
import TransportTUS

/// A fleet, a tus server, a shared folder with source files, and members in this process or in separate processes.
final class MemberFixture: Sendable {
    static let program = FilePath(
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().path
    ).appending("transferq-fleet").string

    let folder: FilePath
    let fleet: FleetFixture
    let server: TUSLoopbackServer
    private let listener: PostgresConnection

    /// - Parameters:
    ///   - credentials: The credentials of the account `studio`.
    ///   - database: The server of the fleet's database, or nil for the shared server.
    init(credentials: [CredentialReference] = [], database: PostgresServer? = nil) async throws {
        folder = FilePath(FileManager.default.temporaryDirectory.appending(path: "fleet-\(UUID().uuidString)").path)
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        server = TUSLoopbackServer(folder: folder.appending("server"))
        let address = try await server.start().absoluteString
        fleet = try await FleetFixture(
            account: Account("studio", endpoints: [Endpoint(transport: .tus, address: address, credentials: credentials)]),
            server: database,
            hasLongLeases: false)
        listener = PostgresConnection(try PostgresURL(fleet.url)) { try $0.execute("LISTEN transferq_fleet") }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: folder.string)
    }

    /// Creates a source file with content that depends on its name.
    func file(_ name: String, size: Int) throws -> FilePath {
        var state = UInt64(size) &+ UInt64(truncatingIfNeeded: name.utf8.reduce(7) { $0 &* 31 &+ Int($1) })
        var data = Data(capacity: size + 8)
        while data.count < size {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            unsafe withUnsafeBytes(of: state ^ state >> 29) { unsafe data.append(contentsOf: $0) }
        }
        let path = folder.appending(name)
        try data.prefix(size).write(to: URL(filePath: path.string))
        return path
    }

    /// Adds a session with files of the given sizes.
    func add(_ name: String, sizes: [Int]) async throws -> SessionID {
        let paths = try sizes.enumerated().map { try file("\(name)-\($0.offset)", size: $0.element) }
        return try await fleet.fleet.add([try .upload(paths, to: "studio", name: name)])[0]
    }

    /// Waits until a condition holds. Checks the condition after each notification from the fleet, and at least every 50 ms.
    func wait(_ comment: String, until condition: () async throws -> Bool) async throws {
        while try await !condition() {
            try Task.checkCancellation()
            // While the database is unavailable, the next check of the condition throws an error, or waits for the server.
            _ = try? await listener.awaitNotifications(timeout: .milliseconds(50))
        }
    }

    /// Makes the database reject a progress row for which an SQL condition on `NEW` is true.
    func rejectProgress(_ condition: String) async throws {
        try await fleet.query(
            """
            CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF \(condition) THEN RAISE EXCEPTION 'rejected' USING ERRCODE = 'check_violation'; END IF;
                RETURN NEW;
            END $$
            """)
        try await fleet.query("CREATE TRIGGER reject BEFORE INSERT ON progress FOR EACH ROW EXECUTE FUNCTION reject()")
    }

    func waitForAll(_ ids: [SessionID], _ state: SessionState = .completed) async throws {
        try await wait("\(ids) are \(state)") {
            try await fleet.fleet.sessions(in: .sessions(ids)).allSatisfy { $0.state == state }
        }
    }

    /// Waits until the server has stored this number of bytes of a file, even if the upload is incomplete.
    func waitForBytes(_ count: Int64, of name: String) async throws {
        try await wait("the server has \(count) bytes of \(name)") {
            try server.storedFiles(named: name).contains { try SourceIdentity(ofFileAt: $0).size >= count }
        }
    }

    /// Checks that the server has each file of a session exactly once, with the right content, and no other upload of the file.
    func checkArrived(_ name: String, files: Int) throws {
        for number in 0..<files {
            let name = "\(name)-\(number)"
            let stored = server.storedFiles(named: name)
            #expect(stored.count == 1, "\(name)")
            let uploads = server.statistics.uploads.filter { $0.filename == name }
            #expect(uploads.count == 1 && uploads.allSatisfy(\.isComplete), "\(name)")
            for file in stored {
                let (sent, received) = try (Self.digest(folder.appending(name)), Self.digest(file))
                #expect(sent == received, "\(name)")
            }
        }
    }

    private static func digest(_ path: FilePath) throws -> SHA256.Digest {
        SHA256.hash(data: try Data(contentsOf: URL(filePath: path.string)))
    }

    // MARK: Members

    func member(
        _ name: String, slots: Int = 1, transports: [any Transport] = [TUSTransport()],
        credentials: any CredentialProvider = ReferencedCredentials(),
        logger: Logger = Logger(label: "fleet") { _ in SwiftLogNoOpLogHandler() }
    ) async throws -> FleetMember {
        try await FleetMember(
            of: fleet.url, folder: folder.appending("store-\(name)"), transports: transports, credentials: credentials,
            configuration: FleetMemberConfiguration(name: name, slots: slots, logger: logger))
    }

    /// Starts a member in a separate process.
    ///
    /// - Parameter environment: Variables to add to the environment of the test process.
    func start(_ name: String, slots: Int = 1, environment: [String: String] = [:]) throws -> StartedProgram {
        try StartedProgram(
            Self.program,
            [
                "--fleet", fleet.url, "agent", "run", "--store", folder.appending("store-\(name)").string, "--name", name, "--slots",
                "\(slots)",
            ], environment: environment,
            errors: folder.appending("log-\(name)"))
    }

    /// Compiles a library that replaces functions of the C library in a member through `LD_PRELOAD`.
    func library(_ name: String, _ text: String) async throws -> String {
        let (source, library) = (folder.appending("\(name).c").string, folder.appending("\(name).so").string)
        try text.write(toFile: source, atomically: false, encoding: .utf8)
        #expect(try await BlockingIO.run { try StartedProgram.run("cc", ["-shared", "-fPIC", "-o", library, source]).status } == 0)
        return library
    }

    /// Runs members while a closure executes, then stops them.
    func run(_ members: [FleetMember], _ body: () async throws -> Void) async throws {
        let tasks = members.map { member in Task { try await member.run() } }
        let result: Result<Void, any Error>
        do {
            result = .success(try await body())
        } catch {
            result = .failure(error)
        }
        for member in members { await member.stop() }
        for task in tasks { try await task.value }
        try result.get()
    }

    /// Waits until a member has renewed the lease of a session `count` times, or until no member has the session.
    func waitForRenewals(_ count: Int, of id: SessionID) async throws {
        var renewals = 0
        var last: String?
        try await wait("the lease is renewed \(count) times") {
            let lease = try await fleet.query("SELECT lease_until FROM session WHERE id = $1", ["\(id)"]).first?.optional(0)
            if let last, lease != last { renewals += 1 }
            last = lease
            return lease == nil || renewals >= count
        }
    }

    /// The name of the member that has a session.
    func owner(of id: SessionID) async throws -> String? {
        try await fleet.query("SELECT owner FROM session WHERE id = $1", ["\(id)"]).first?.optional(0)
    }
}
