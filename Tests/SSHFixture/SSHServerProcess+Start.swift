import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension SSHServerProcess {
    /// - Returns: The process, once it listens; nil if the port was taken.
    static func start(_ configuration: URL, log: URL, preload: URL?, port: UInt16) throws -> pid_t? {
        // sshd wants to be called by its absolute path, as it starts itself anew for each connection.
        let pid = try spawn(
            ["/usr/sbin/sshd", "-D", "-e", "-f", configuration.path], log: log, environment: preload.map { ["LD_PRELOAD=\($0.path)"] } ?? []
        )
        while true {
            if canConnect(port) {
                // It may be another's port, if this one could not have it.
                var status: CInt = 0
                if unsafe waitpid(pid, &status, WNOHANG) == 0 { return pid }
                return nil
            }
            var status: CInt = 0
            if unsafe waitpid(pid, &status, WNOHANG) == pid {
                let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
                if text.contains("Address already in use") { return nil }
                throw DidNotStart(description: "sshd did not start: \(text)")
            }
            usleep(5_000)
        }
    }

    /// Starts a process that only the caller waits for, unlike Foundation's. What it inherits of the test runner's descriptors sshd closes at once.
    private static func spawn(_ arguments: [String], log: URL, environment: [String]) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_addopen(&actions, 1, log.path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2)
        let inherited = ProcessInfo.processInfo.environment.map { "\($0.key)=\($0.value)" }
        let words = unsafe arguments.map { unsafe strdup($0) } + [nil]
        let variables = unsafe (inherited + environment).map { unsafe strdup($0) } + [nil]
        defer {
            for unsafeword in unsafe words { unsafe free(word) }
            for unsafevariable in unsafe variables { unsafe free(variable) }
        }
        var pid: pid_t = 0
        let code = unsafe posix_spawn(&pid, arguments[0], &actions, nil, words, variables)
        guard code == 0 else {
            throw DidNotStart(
                description: "\(arguments[0]) can't be started: \(unsafe String(cString: strerror(code))). Tests/run installs it.")
        }
        return pid
    }

    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
        return address
    }

    private static func makeSocket() -> CInt {
        #if canImport(Glibc)
            socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        #else
            socket(AF_INET, SOCK_STREAM, 0)
        #endif
    }

    private static func canConnect(_ port: UInt16) -> Bool {
        let socket = makeSocket()
        defer { close(socket) }
        var address = loopback(port)
        return unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    static func freePort() throws -> UInt16 {
        let socket = makeSocket()
        defer { close(socket) }
        var address = loopback(0)
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                unsafe bind(socket, address, size) == 0 && getsockname(socket, address, &size) == 0
            }
        }
        guard isBound else { throw DidNotStart(description: "No port of the loopback interface is free.") }
        return UInt16(bigEndian: address.sin_port)
    }
}
