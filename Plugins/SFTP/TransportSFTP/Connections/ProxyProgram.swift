import Locking
import SSHEngine
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
    /// How a program ended by itself.
    struct End: Sendable {
        /// As `waitpid` tells it (wait(2)).
        let status: CInt
        /// The last line that it wrote on standard error, without control characters; empty if there was none.
        let lastWords: String
    }

    private struct State: Sendable {
        /// Nil once it has ended, and its number may be another one's.
        var number: pid_t?
        var status: CInt = 0
    }

    private let state: Locked<State>
    private let ended = Once<End>()

    /// Starts a command by the shell, with one end of a socket as its input and output.
    ///
    /// It has a process group of its own, so that a terminal's interrupt, which may only mean that our own program is to end in good order, does
    /// not cut the connection.
    ///
    /// - Parameter log: Told each line that it writes on standard error, up to a length, and without control characters.
    /// - Returns: The program, and the other end, not blocking, which the caller closes.
    static func start(
        _ command: String, log: @escaping @Sendable (String) -> Void
    ) throws(TransferError) -> (ProxyProgram, FileDescriptor) {
        do {
            let (ours, theirs) = try socketPair()
            defer { try? theirs.close() }
            do {
                return (try start(command, theirs, log), ours)
            } catch {
                try? ours.close()
                throw error
            }
        } catch {
            throw TransferError(.noSpace, .internalFailure, "The program of the setting proxyCommand can't be started.", cause: "\(error)")
        }
    }

    private static func start(
        _ command: String, _ socket: FileDescriptor, _ log: @escaping @Sendable (String) -> Void
    ) throws -> ProxyProgram {
        let (errors, writing) = try FileDescriptor.privatePipe()
        do {
            let number = try spawn("exec \(command)", socket, errors: writing)
            let program = ProxyProgram(number)
            try startThread { program.awaitEnd(of: number, writing) }
            // Nothing is left open: without this thread, the one above still closes its end.
            do { try startThread { program.read(errors, log) } } catch { try? errors.close() }
            return program
        } catch {
            try? errors.close()
            try? writing.close()
            throw error
        }
    }

    private init(_ number: pid_t) {
        state = Locked(State(number: number))
    }

    deinit { end() }

    /// Tells it to go, as its connection has ended.
    func end() {
        state.withLock { state in
            if let number = state.number { kill(-number, SIGHUP) }
        }
    }

    /// Waits until it has ended by itself, for so long. Called once, before ``end()``.
    func end(within limit: Duration) async -> End? {
        let timer = Task { [ended] in
            try await Task.sleep(for: limit)
            ended.resume(.failure(CancellationError()))
        }
        defer { timer.cancel() }
        return try? await ended.value()
    }

    private func awaitEnd(of number: pid_t, _ errors: FileDescriptor) {
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(number), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        state.withLock { state in
            state.number = nil
            while unsafe waitpid(number, &state.status, 0) < 0, errno == EINTR {}
        }
        // Whoever it started may keep the pipe open: this is behind all that it wrote itself.
        _ = try? errors.writeAll([0])
        try? errors.close()
    }

    private static let longestLine = 200

    private func read(_ errors: FileDescriptor, _ log: @Sendable (String) -> Void) {
        defer { try? errors.close() }
        var (line, last) = ([UInt8](), "")
        func endLine() {
            let text = printable(line)
            line = []
            guard !text.isEmpty else { return }
            last = text
            log(text)
        }
        var buffer = [UInt8](repeating: 0, count: 4_096)
        while let count = try? unsafe buffer.withUnsafeMutableBytes({ try unsafe errors.read(into: $0) }), count > 0 {
            for byte in buffer[..<count] {
                if byte == UInt8(ascii: "\n") { endLine() } else if line.count < Self.longestLine { line.append(byte) }
            }
            if buffer[..<count].contains(0), state.withLock({ $0.number == nil }) { break }
        }
        endLine()
        ended.resume(.success(End(status: state.withLock { $0.status }, lastWords: last)))
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

    private static func spawn(_ command: String, _ socket: FileDescriptor, errors: FileDescriptor) throws(Errno) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        try check(unsafe posix_spawn_file_actions_init(&actions))
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for number in [STDIN_FILENO, STDOUT_FILENO] {
            try check(unsafe posix_spawn_file_actions_adddup2(&actions, socket.rawValue, number))
        }
        try check(unsafe posix_spawn_file_actions_adddup2(&actions, errors.rawValue, STDERR_FILENO))
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

extension ProxyProgram.End {
    /// For messages; nil if it was told to go.
    private var manner: String? {
        let signal = status & 0x7F
        if signal == 0 { return "status \((status >> 8) & 0xFF)" }
        return signal == SIGHUP ? nil : "signal \(signal)"
    }

    /// What is to be told instead of a connection that ended because of it.
    func explanation(of error: TransferError, _ address: SFTPAddress) -> TransferError {
        // One that says nothing and ends well only tells that the other end closed the connection, which the error does better.
        guard let manner, status != 0 || !lastWords.isEmpty else { return error }
        return TransferError(
            error.failureClass, error.code,
            "The command of the setting proxyCommand ended with \(manner) before there was a connection to \(address.serverName)"
                + (lastWords.isEmpty ? "." : ": \(lastWords)"), cause: error.cause)
    }
}
