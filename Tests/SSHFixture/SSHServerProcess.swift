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

/// An OpenSSH server for one test or suite, on a free port of the loopback interface. It runs as the user who runs the tests. Its keys are
/// in a temporary folder, which is removed with this object.
package final class SSHServerProcess: Sendable {
    package struct DidNotStart: Error, CustomStringConvertible {
        package let description: String
    }

    package let port: UInt16
    /// The server's keys, the user's keys, and other files of a test.
    package let folder: URL
    /// The user who runs the tests. Can log in.
    package let user: String
    private let process: Locked<GuardedProcess>
    private let preload: URL?

    /// Key types that both OpenSSH and libssh2 support.
    package enum KeyType: String, CaseIterable, Sendable {
        case ed25519
        case ecdsa
        case rsa
    }

    /// Starts a server, and returns once it accepts connections. Call ``stop()`` at the end of the test. This call also keeps the object
    /// alive until then.
    ///
    /// - Parameters:
    ///   - hostKeys: The types of the host keys.
    ///   - options: Additional configuration lines (sshd_config(5)). They precede and so override the default lines, because sshd uses the
    ///     first value of an option.
    ///   - subsystems: Shell scripts by subsystem name, in addition to `sftp`. A script with the name `sftp` replaces that subsystem.
    ///     In a script, `$folder` is the path of ``folder``.
    ///   - knowsPasswords: Whether ``PasswordLibrary`` checks passwords. Requires a C compiler.
    package static func start(
        hostKeys: [KeyType] = [.ed25519], options: [String] = [], subsystems: [String: String] = [:], knowsPasswords: Bool = false
    ) async throws -> SSHServerProcess {
        try await runBlocking { try SSHServerProcess(hostKeys, options, subsystems, knowsPasswords) }
    }

    private init(_ hostKeys: [KeyType], _ options: [String], _ subsystems: [String: String], _ knowsPasswords: Bool) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "transferkit-sshd-\(UUID().uuidString)")
        self.folder = folder
        user = NSUserName()
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        // If the server runs as root, its unprivileged processes need this folder (sshd(8), FILES).
        if getuid() == 0 { try? FileManager.default.createDirectory(atPath: "/run/sshd", withIntermediateDirectories: true) }
        for type in hostKeys { try Self.makeKey(at: folder.appending(path: "host_\(type.rawValue)"), type: type) }
        try Self.makeKey(at: folder.appending(path: "user"), type: .ed25519)
        try FileManager.default.copyItem(at: folder.appending(path: "user.pub"), to: folder.appending(path: "authorized_keys"))
        let preload = knowsPasswords ? try PasswordLibrary.make(in: folder) : nil
        var programs = ["sftp": "/usr/lib/openssh/sftp-server"]
        for (name, script) in subsystems {
            let file = folder.appending(path: "subsystem_\(name)")
            try Data("folder='\(folder.path)'\n\(script)\n".utf8).write(to: file)
            // A shell reads the script, because executing the file would fail while another process has inherited a descriptor that is open
            // for writing. `exec` makes the SSH server the parent of the script, as scripts expect. Not every shell replaces itself with
            // the last command.
            programs[name] = "exec /bin/sh \(file.path)"
        }
        // Another process may start to use the free port before the server does. The next iteration then tries another port.
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
            if let process = try Self.start(file, log: folder.appending(path: "log"), preload: preload) {
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

    /// The path of the user's private key, which is authorized to log in.
    package var userKey: String { folder.appending(path: "user").path }

    package var log: String { (try? String(contentsOf: folder.appending(path: "log"), encoding: .utf8)) ?? "" }

    /// Returns the server's public host key in the format `type base64`.
    package func hostKey(_ type: KeyType = .ed25519) throws -> String {
        let text = try String(contentsOf: folder.appending(path: "host_\(type.rawValue).pub"), encoding: .utf8)
        return text.split(separator: " ").prefix(2).joined(separator: " ")
    }

    /// Creates a known hosts file with the server's keys of the given types, and returns its path.
    ///
    /// - Parameter port: The port of a relay, or nil for the server's port.
    package func knownHosts(_ types: [KeyType] = [.ed25519], port: UInt16? = nil) throws -> String {
        let file = folder.appending(path: "known_hosts_\(UUID().uuidString)")
        let lines = try types.map { "[127.0.0.1]:\(port ?? self.port) \(try hostKey($0))\n" }
        try Data(lines.joined().utf8).write(to: file)
        return file.path
    }

    /// Authorizes another key.
    package func authorize(_ publicKeyFile: String) throws {
        let file = folder.appending(path: "authorized_keys")
        try (Data(contentsOf: file) + Data(contentsOf: URL(filePath: publicKeyFile))).write(to: file)
    }

    /// Kills the server, which may exit shortly after this method returns. Existing connections continue, because they have their own
    /// processes.
    package func stop() {
        process.withLock { $0.stop() }
    }

    /// Kills the processes with the given name, such as `sftp-server`, that serve connections. Blocks.
    ///
    /// - Returns: The number of killed processes.
    package func kill(named name: String) -> Int { process.withLock { $0 }.kill(named: name) }

    /// Kills the server and the processes of all connections, as a power failure would.
    package func crash() async throws {
        let process = process.withLock { $0 }
        try await Self.runBlocking { process.killTree() }
    }

    /// Restarts the server after ``crash()``, on the same port.
    package func startAgain() async throws {
        let (folder, preload, port) = (folder, preload, port)
        let process = try await Self.runBlocking {
            for _ in 0..<1_000 {
                // A connection of another process may temporarily use this port as its local port.
                let process = try Self.start(
                    folder.appending(path: "sshd_config"), log: folder.appending(path: "log"), preload: preload)
                if let process { return process }
            }
            throw DidNotStart(description: "sshd can't listen on port \(port) again, because another process uses it.")
        }
        self.process.withLock { $0 = process }
    }

    /// Creates a key pair. The private key is at `path`, and the public key is at `path` with the suffix `.pub`. Blocks.
    package static func makeKey(at path: URL, type: KeyType, passphrase: String = "", options: [String] = []) throws {
        try run(
            "/usr/bin/ssh-keygen",
            ["-q", "-t", type.rawValue, "-N", passphrase, "-C", "test", "-f", path.path] + options + (type == .rsa ? ["-b", "2048"] : []))
    }

    /// Runs a program until it exits. Throws if the exit status is not 0. Blocks.
    @discardableResult package static func run(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws
        -> Int32
    {
        let status = try StartedProgram.run(program, arguments, environment: environment).status
        guard status == 0 else { throw DidNotStart(description: "\(program) \(arguments.joined(separator: " ")) ended with \(status).") }
        return status
    }

    /// Runs blocking work outside the cooperative pool.
    package static func runBlocking<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            do {
                try startThread { continuation.resume(with: Result(catching: body)) }
            } catch {
                continuation.resume(throwing: error)
            }
        }
    }
}
