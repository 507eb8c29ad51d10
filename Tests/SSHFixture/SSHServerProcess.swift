package import Foundation
import Locking
import ProcessFixture
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A real OpenSSH server for one test or suite: run as the user who runs the tests, on a free port of the loopback interface, with keys of its
/// own in a folder that goes with this object.
package final class SSHServerProcess: Sendable {
    package struct DidNotStart: Error, CustomStringConvertible {
        package let description: String
    }

    /// The port that it listens on.
    package let port: UInt16
    /// Its keys, the user's keys, and whatever a test puts there.
    package let folder: URL
    /// Who may log in: whoever runs the tests.
    package let user: String
    private let process: Locked<GuardedProcess>
    private let preload: URL?

    /// The types of keys that both sides have.
    package enum KeyType: String, CaseIterable, Sendable {
        case ed25519
        case ecdsa
        case rsa
    }

    /// Starts a server, and returns when it listens. To be stopped at the end of the test, which also keeps it alive until then.
    ///
    /// - Parameters:
    ///   - hostKeys: The types of its host keys.
    ///   - options: Further lines for its configuration (sshd_config(5)); those come first, and the first value of an option counts.
    ///   - subsystems: Shell scripts by the names of the subsystems that they are, beside `sftp` or instead of it. They are in ``folder``, which
    ///     they know as `$folder`.
    ///   - knowsPasswords: Whether ``PasswordLibrary`` says what passwords are right. Takes a C compiler.
    package static func start(
        hostKeys: [KeyType] = [.ed25519], options: [String] = [], subsystems: [String: String] = [:], knowsPasswords: Bool = false
    ) async throws -> SSHServerProcess {
        try await awayFromThePool { try SSHServerProcess(hostKeys, options, subsystems, knowsPasswords) }
    }

    private init(_ hostKeys: [KeyType], _ options: [String], _ subsystems: [String: String], _ knowsPasswords: Bool) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "transferkit-sshd-\(UUID().uuidString)")
        self.folder = folder
        user = NSUserName()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        // Where a server that runs as root keeps its processes that talk to strangers (sshd(8), FILES).
        if getuid() == 0 { try? FileManager.default.createDirectory(atPath: "/run/sshd", withIntermediateDirectories: true) }
        for type in hostKeys { try Self.makeKey(at: folder.appending(path: "host_\(type.rawValue)"), type: type) }
        try Self.makeKey(at: folder.appending(path: "user"), type: .ed25519)
        try FileManager.default.copyItem(at: folder.appending(path: "user.pub"), to: folder.appending(path: "authorized_keys"))
        let preload = knowsPasswords ? try PasswordLibrary.make(in: folder) : nil
        var programs = ["sftp": "/usr/lib/openssh/sftp-server"]
        for (name, script) in subsystems {
            let file = folder.appending(path: "subsystem_\(name)")
            try Data("folder='\(folder.path)'\n\(script)\n".utf8).write(to: file)
            // Read by a shell, as a file can't be run while a process that started meanwhile has a copy of the descriptor that wrote it.
            // Not every shell replaces itself by the last command, and scripts take their parent for the SSH server.
            programs[name] = "exec /bin/sh \(file.path)"
        }
        // A port that is free now may be taken the moment after: then another is tried.
        for _ in 0..<20 {
            let port = try Loopback.freePort()
            let lines =
                options + [
                    "Port \(port)", "ListenAddress 127.0.0.1", "PidFile none", "UsePAM no", "StrictModes no", "PermitRootLogin yes",
                    "AuthorizedKeysFile \(folder.path)/authorized_keys", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
                    "LogLevel VERBOSE", "UseDNS no",
                ] + (options.contains { $0.hasPrefix("MaxStartups ") } ? [] : ["MaxStartups 200"])
                + hostKeys.map { "HostKey \(folder.path)/host_\($0.rawValue)" } + programs.map { "Subsystem \($0) \($1)" }
            let file = folder.appending(path: "sshd_config")
            try Data(lines.joined(separator: "\n").appending("\n").utf8).write(to: file)
            if let process = try Self.start(file, log: folder.appending(path: "log"), preload: preload, port: port) {
                self.port = port
                self.process = Locked(process)
                self.preload = preload
                return
            }
        }
        throw DidNotStart(description: "No port was free for sshd.")
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// The private key that may log in.
    package var userKey: String { folder.appending(path: "user").path }

    /// What the server told, for a test that fails.
    package var log: String { (try? String(contentsOf: folder.appending(path: "log"), encoding: .utf8)) ?? "" }

    /// The server's public host key as `type base64`.
    package func hostKey(_ type: KeyType = .ed25519) throws -> String {
        let text = try String(contentsOf: folder.appending(path: "host_\(type.rawValue).pub"), encoding: .utf8)
        return text.split(separator: " ").prefix(2).joined(separator: " ")
    }

    /// A file of known hosts with the server's keys of these types, reached at a port, its own if none is given.
    package func knownHosts(_ types: [KeyType] = [.ed25519], port: UInt16? = nil) throws -> String {
        let file = folder.appending(path: "known_hosts_\(UUID().uuidString)")
        let lines = try types.map { "[127.0.0.1]:\(port ?? self.port) \(try hostKey($0))\n" }
        try Data(lines.joined().utf8).write(to: file)
        return file.path
    }

    /// Lets another key log in.
    package func authorize(_ publicKeyFile: String) throws {
        let file = folder.appending(path: "authorized_keys")
        try (Data(contentsOf: file) + Data(contentsOf: URL(filePath: publicKeyFile))).write(to: file)
    }

    /// Ends the server, soon after this returns; connections that are under way go on, as their processes are others.
    package func stop() {
        process.withLock { $0.stop() }
    }

    /// Kills the processes of a name, such as `sftp-server`, that serve connections. Blocks.
    ///
    /// - Returns: How many there were.
    package func kill(named name: String) -> Int { process.withLock { $0 }.kill(named: name) }

    /// Kills the server and the processes of all connections, as the end of its machine would.
    package func crash() async throws {
        let process = process.withLock { $0 }
        try await Self.awayFromThePool { process.killTree() }
    }

    /// Starts it anew after ``crash()``, on the port that it had.
    package func startAgain() async throws {
        let (folder, preload, port) = (folder, preload, port)
        let process = try await Self.awayFromThePool {
            for _ in 0..<1_000 {
                // Somebody's own end of a connection may have that number for a moment.
                let process = try Self.start(
                    folder.appending(path: "sshd_config"), log: folder.appending(path: "log"), preload: preload, port: port)
                if let process { return process }
            }
            throw DidNotStart(description: "sshd does not get port \(port) again.")
        }
        self.process.withLock { $0 = process }
    }

    /// Makes a key pair; `path` holds the private one, with `.pub` the public one. Blocks.
    package static func makeKey(at path: URL, type: KeyType, passphrase: String = "", options: [String] = []) throws {
        try run(
            "/usr/bin/ssh-keygen",
            ["-q", "-t", type.rawValue, "-N", passphrase, "-C", "test", "-f", path.path] + options + (type == .rsa ? ["-b", "2048"] : []))
    }

    /// Runs a program to its end. Blocks.
    @discardableResult package static func run(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws
        -> Int32
    {
        let status = try StartedProgram.run(program, arguments, environment: environment).status
        guard status == 0 else { throw DidNotStart(description: "\(program) \(arguments.joined(separator: " ")) ended with \(status).") }
        return status
    }

    /// Does something that blocks away from the cooperative pool.
    package static func awayFromThePool<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try startThread { continuation.resume(with: Result(catching: body)) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}
