import Locking
import SystemPackage
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A program whose input and output lead to a server.
final class ProxyProgram: Sendable {
    /// Nil once it has ended, and its number may be another one's.
    private let process: Locked<pid_t?>

    /// Starts a command by the shell, with one end of a socket as its input and output.
    ///
    /// It has a process group of its own, so that a terminal's interrupt, which may only mean that our own program is to end in good order, does
    /// not cut the connection.
    ///
    /// - Returns: The program, and the other end, not blocking, which the caller closes.
    static func start(_ command: String) throws(TransferError) -> (ProxyProgram, FileDescriptor) {
        do {
            let (ours, theirs) = try socketPair()
            defer { try? theirs.close() }
            do {
                let process = try spawn("exec \(command)", theirs)
                let program = ProxyProgram(process)
                try startThread { program.awaitEnd(of: process) }
                return (program, ours)
            } catch {
                try? ours.close()
                throw error
            }
        } catch {
            throw TransferError(.noSpace, .internalFailure, "The program of the setting proxyCommand can't be started.", cause: "\(error)")
        }
    }

    private init(_ process: pid_t) {
        self.process = Locked(process)
    }

    deinit { end() }

    /// Tells it to go, as its connection has ended.
    func end() {
        process.withLock { process in
            if let process { kill(-process, SIGHUP) }
        }
    }

    private func awaitEnd(of number: pid_t) {
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(number), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        process.withLock { process in
            process = nil
            var status: CInt = 0
            while unsafe waitpid(number, &status, 0) < 0, errno == EINTR {}
        }
    }

    private static func socketPair() throws(Errno) -> (ours: FileDescriptor, theirs: FileDescriptor) {
        var ends: [CInt] = [-1, -1]
        #if os(Linux)
            let type = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
        #else
            let type = SOCK_STREAM
        #endif
        guard unsafe socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw Errno(rawValue: errno) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        // The program's end blocks, as what it reads and writes does by default.
        _ = fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_NONBLOCK)
        return (FileDescriptor(rawValue: ends[0]), FileDescriptor(rawValue: ends[1]))
    }

    private static func spawn(_ command: String, _ socket: FileDescriptor) throws(Errno) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        try check(unsafe posix_spawn_file_actions_init(&actions))
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for number in [STDIN_FILENO, STDOUT_FILENO] {
            try check(unsafe posix_spawn_file_actions_adddup2(&actions, socket.rawValue, number))
        }
        var attributes = posix_spawnattr_t()
        try check(unsafe posix_spawnattr_init(&attributes))
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        unsafe sigemptyset(&none)
        unsafe sigfillset(&all)
        try check(unsafe posix_spawnattr_setsigmask(&attributes, &none))
        try check(unsafe posix_spawnattr_setsigdefault(&attributes, &all))
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP
        try check(unsafe posix_spawnattr_setflags(&attributes, Int16(flags)))
        let arguments: [String] = ["/bin/sh", "-c", command]
        var words = unsafe arguments.map { unsafe strdup($0) } + [nil]
        defer { unsafe words.forEach { unsafe free($0) } }
        var process: pid_t = 0
        try check(unsafe posix_spawn(&process, "/bin/sh", &actions, &attributes, &words, environ))
        return process
    }

    private static func check(_ code: CInt) throws(Errno) {
        if code != 0 { throw Errno(rawValue: code) }
    }
}
