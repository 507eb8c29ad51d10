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

/// A running program that connects to a server, and passes bytes between the server and its standard input and output (`proxyCommand`).
final class ProxyProgram: Sendable {
    struct End: Sendable {
        /// From `waitpid` (wait(2)).
        let status: CInt
        /// The last line of the standard error, without control characters, or an empty string.
        let lastLine: String
    }

    private struct State: Sendable {
        /// The process ID; nil after the program has exited, because the system may reuse the ID.
        var processID: pid_t?
        var status: CInt = 0
    }

    private let state: Locked<State>
    private let ended = SingleResult<End>()

    /// Starts a shell command with one end of a socket as its input and output. The command has its own process group, because this process
    /// still needs the connection for an orderly shutdown after an interrupt from the terminal.
    ///
    /// - Parameter log: Called on a separate thread with each line of the standard error, truncated to 200 bytes and without control
    ///   characters.
    /// - Returns: The program, and the other end of the socket in non-blocking mode, which the caller must close.
    /// - Throws: A `TransferError` of the class `noSpace` if the system can't start the program.
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
            throw TransferError(.noSpace, .internalFailure, "The command in proxyCommand can't be started.", cause: "\(error)")
        }
    }

    private static func start(
        _ command: String, _ socket: FileDescriptor, _ log: @escaping @Sendable (String) -> Void
    ) throws -> ProxyProgram {
        let (errors, writing) = try FileDescriptor.privatePipe()
        do {
            let processID = try ShellCommand.spawn(
                "exec \(command)", descriptors: [STDIN_FILENO: socket, STDOUT_FILENO: socket, STDERR_FILENO: writing], hasOwnGroup: true)
            let program = ProxyProgram(processID)
            try startThread { program.awaitEnd(of: processID, writing) }
            // If the second thread can't start, no descriptor leaks: `errors` is closed here, and the first thread closes `writing`.
            do { try startThread { program.read(errors, log) } } catch { try? errors.close() }
            return program
        } catch {
            try? errors.close()
            try? writing.close()
            throw error
        }
    }

    private init(_ processID: pid_t) {
        state = Locked(State(processID: processID))
    }

    deinit { end() }

    /// Ends the program and its child processes with SIGHUP, unless the program has already exited.
    func end() {
        state.withLock { state in
            if let processID = state.processID { kill(-processID, SIGHUP) }
        }
    }

    /// Waits until the program exits, without sending a signal. Call this method at most once, and before ``end()``.
    ///
    /// - Returns: The program's exit status and last line; nil after the time limit.
    func end(within limit: Duration) async -> End? {
        let timer = Task { [ended] in
            try await Task.sleep(for: limit)
            ended.resume(.failure(CancellationError()))
        }
        defer { timer.cancel() }
        return try? await ended.value()
    }

    private func awaitEnd(of processID: pid_t, _ errors: FileDescriptor) {
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(processID), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        state.withLock { state in
            state.processID = nil
            while unsafe waitpid(processID, &state.status, 0) < 0, errno == EINTR {}
        }
        // The program's child processes may keep the pipe open. This byte marks the end of the program's own output.
        _ = try? errors.writeAll([0])
        try? errors.close()
    }

    private static let maximumLineLength = 200

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
                if byte == UInt8(ascii: "\n") { endLine() } else if line.count < Self.maximumLineLength { line.append(byte) }
            }
            if buffer[..<count].contains(0), state.withLock({ $0.processID == nil }) { break }
        }
        endLine()
        ended.resume(.success(End(status: state.withLock { $0.status }, lastLine: last)))
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
        // Not for the program's end, because programs expect blocking input and output.
        _ = fcntl(ends[0], F_SETFL, fcntl(ends[0], F_GETFL) | O_NONBLOCK)
        return (FileDescriptor(rawValue: ends[0]), FileDescriptor(rawValue: ends[1]))
    }
}

extension ProxyProgram.End {
    /// For messages; nil for SIGHUP, which ``ProxyProgram/end()`` sends.
    private var exitReason: String? {
        let signal = status & 0x7F
        if signal == 0 { return "status \((status >> 8) & 0xFF)" }
        return signal == SIGHUP ? nil : "signal \(signal)"
    }

    /// Replaces a connection error that the program may have caused.
    func explanation(of error: TransferError, _ address: SFTPAddress) -> TransferError {
        // The original error is better if this process ended the program, or if the program succeeded without output. In the second case, the
        // server closed the connection.
        guard let exitReason, status != 0 || !lastLine.isEmpty else { return error }
        return TransferError(
            error.failureClass, error.code,
            "The command in proxyCommand ended with \(exitReason) before it reached \(address.serverName)"
                + (lastLine.isEmpty ? "." : ": \(lastLine)"), cause: error.cause)
    }
}
