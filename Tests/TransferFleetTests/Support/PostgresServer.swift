import Foundation
import Locking
import ProcessFixture
import SystemPackage
import TransferFleet
import TransferKit

#if canImport(Glibc)
    import Glibc
#endif

/// A PostgreSQL server from Debian's package, in a temporary folder, on a Unix socket. When the test process ends, the server also ends,
/// and its folder is removed.
///
/// PostgreSQL refuses to run as root, so root starts the server as another user.
final class PostgresServer: Sendable {
    /// The server that most tests share. Each test has a separate database.
    static let shared = Result { try PostgresServer() }

    static let programs = "/usr/lib/postgresql/15/bin"
    /// An unprivileged user of every Debian system.
    private static let user = "nobody"

    let folder: String
    private let program: Locked<StartedProgram?>
    private let options: [String]
    /// The folders of the standby servers that can replace this server.
    private let standbys = Locked<[String]>([])

    /// - Parameters:
    ///   - options: Further arguments of the program `postgres`.
    ///   - primary: The server whose changes this standby server receives; nil for an independent server.
    init(options: [String] = [], standbyOf primary: PostgresServer? = nil) throws {
        let template = "/tmp/transferkit-postgresql-XXXXXX"
        let folder = try unsafe template.withCString { path in
            let copy = unsafe strdup(path)
            defer { unsafe free(copy) }
            guard let copy = unsafe copy, let made = unsafe mkdtemp(copy) else { throw Errno(rawValue: errno) }
            return unsafe String(cString: made)
        }
        (self.folder, self.options) = (folder, options)
        if getuid() == 0, let user = unsafe getpwnam(Self.user) {
            guard unsafe chown(folder, user.pointee.pw_uid, user.pointee.pw_gid) == 0 else { throw Errno(rawValue: errno) }
        }
        let data = "\(folder)/data"
        if let primary {
            try Self.run(["pg_basebackup", "-h", primary.folder, "-U", "owner", "-D", data, "-R", "--no-sync", "--checkpoint=fast"])
            program = Locked(try Self.start(folder, options))
            primary.standbys.withLock { $0.append(folder) }
            return
        }
        try Self.run(["initdb", "-D", data, "-U", "owner", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C"])
        // Require a password only from the user `guarded`, for the test of a wrong password.
        try Self.run(
            [
                "sh", "-c",
                "{ echo 'local all guarded scram-sha-256'; cat \(data)/pg_hba.conf; } > \(data)/new && mv \(data)/new \(data)/pg_hba.conf",
            ])
        program = Locked(try Self.start(folder, options))
    }

    /// Stops the server, which ends all connections. Blocks until the server has ended.
    ///
    /// - Parameter crashes: Whether the server ends immediately, without a clean shutdown.
    func stop(crashes: Bool = false) {
        let stopped = program.withLock { program in
            defer { program = nil }
            return program
        }
        try? stopped?.write(crashes ? "crash\n" : "keep\n")
        stopped?.closeInput()
        _ = stopped?.waitForEnd()
    }

    /// Starts the server again after ``stop()``. Blocks until the server accepts connections.
    func restart() throws {
        let started = try Self.start(folder, options)
        program.withLock { $0 = started }
    }

    /// Starts the server in a shell. The shell stops the server when the shell's standard input is closed, at the latest when the test
    /// process exits.
    private static func start(_ folder: String, _ options: [String]) throws -> StartedProgram {
        let server =
            (prefix + [
                "\(programs)/postgres", "-D", "\(folder)/data", "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off", "-c",
                "max_connections=200", "-c", "log_min_messages=fatal",
            ] + options).map { "'\($0)'" }.joined(separator: " ")
        let script = """
            \(server) 2>'\(folder)/log' </dev/null & server=$!
            until \(programs)/pg_isready -q -h '\(folder)' || ! kill -0 $server; do :; done
            echo ready; read -r line; [ "$line" = crash ] && kill -QUIT $server || kill -INT $server; wait $server
            [ "$line" = keep ] || [ "$line" = crash ] || rm -rf '\(folder)'
            """
        let program = try StartedProgram("sh", ["-c", script])
        _ = try program.read()
        return program
    }

    /// The words before a command that run the command as the unprivileged user; empty unless the test process runs as root.
    static var prefix: [String] {
        getuid() == 0 ? ["setpriv", "--reuid=\(user)", "--regid=nogroup", "--clear-groups"] : []
    }

    private static func run(_ words: [String]) throws {
        let isProgram = FileManager.default.isExecutableFile(atPath: "\(programs)/\(words[0])")
        let command = prefix + [isProgram ? "\(programs)/\(words[0])" : words[0]] + words.dropFirst()
        let result = try StartedProgram.run(command[0], Array(command.dropFirst()))
        guard result.status == 0 else { throw QueueError(.storageUnavailable, "\(words) failed with \(result.status).") }
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// The URL of a database. If the server has standbys, the URL lists all of these servers, and libpq connects to the current primary.
    func url(_ database: String, user: String = "owner", options: String = "") -> String {
        let hosts = [folder] + standbys.withLock(\.self)
        let attributes = hosts.count > 1 ? "&target_session_attrs=read-write" : ""
        return "postgresql://\(user)@/\(database)?host=\(hosts.joined(separator: ","))\(attributes)\(options)"
    }

    @discardableResult
    func query(_ statement: String, _ values: [String?] = [], in database: String = "postgres") async throws -> [PostgresRow] {
        let connection = PostgresConnection(try PostgresURL(url(database)))
        let rows = try await connection.transaction { try $0.query(statement, values) }
        await connection.close()
        return rows
    }

    /// Creates an empty database, and returns its name.
    func createDatabase() async throws -> String {
        let name = "t\(UUID().uuidString.lowercased().replacing("-", with: ""))"
        // CREATE DATABASE can't run in a transaction.
        let link = try PostgresLink(try PostgresURL(url("postgres")))
        try link.execute("CREATE DATABASE \(name)")
        return name
    }
}
