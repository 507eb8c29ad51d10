import Dispatch
import Locking
package import SystemPackage
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A shell command whose standard output is sent as a stream.
package final class ProducerCommand: Sendable {
    private let text: String
    /// The process ID; nil before the start and after the end, because the system may reuse the ID.
    private let process = Locked<pid_t?>(nil)
    private let end = AsyncStream.makeStream(of: CInt.self)

    /// The output of the command.
    package let output: FileDescriptor
    private let writing: FileDescriptor

    /// Creates a pipe for the output. Create the object before this process starts any other program, because such a program could inherit the
    /// pipe.
    ///
    /// - Parameter text: The command for `/bin/sh -c`.
    package init(_ text: String) throws {
        self.text = text
        (output, writing) = try FileDescriptor.pipe()
        // The command inherits a copy of the writing end, but not the reading end, so its writes fail after this process has ended.
        for end in [output, writing] { _ = fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) }
    }

    /// Starts the command. Call this method only once.
    ///
    /// - Throws: A `CommandFailure` if the command can't be started.
    func start() throws(CommandFailure) { try start(onThread: startThread) }

    /// Starts the command. Call this method only once.
    ///
    /// - Parameter startThread: Runs a function on a new thread.
    /// - Throws: A `CommandFailure` if the thread or the command can't be started.
    package func start(onThread startThread: (@escaping @Sendable () -> Void) throws(Errno) -> Void) throws(CommandFailure) {
        defer { try? writing.close() }
        let hasStarted = DispatchSemaphore(value: 0)
        do {
            // Create the thread before the command, because only this thread waits for the end of the command and reaps its process.
            try startThread { [self] in
                hasStarted.wait()
                if let identifier = process.withLock({ $0 }) { awaitEnd(of: identifier) }
            }
        } catch {
            throw CommandFailure(
                .storage, "Cannot create a thread for the command: \(error). Raise the limit of processes (ulimit -u).")
        }
        defer { hasStarted.signal() }
        do {
            let identifier = try ShellCommand.spawn(text, descriptors: [STDOUT_FILENO: writing], hasOwnGroup: false)
            process.withLock { $0 = identifier }
        } catch {
            throw CommandFailure(.storage, "Cannot start /bin/sh: \(error).")
        }
    }

    private func awaitEnd(of identifier: pid_t) {
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(identifier), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
        var status: CInt = 0
        process.withLock { process in
            process = nil
            while unsafe waitpid(identifier, &status, 0) < 0, errno == EINTR {}
        }
        end.continuation.yield(status)
        end.continuation.finish()
    }

    /// Sends SIGTERM to the command, unless it has exited.
    func terminate() {
        process.withLock { process in
            if let process { kill(process, SIGTERM) }
        }
    }

    /// Waits until the command exits.
    ///
    /// - Throws: A `CommandFailure` if the command failed; `CancellationError` if the task was cancelled.
    func waitUntilExit() async throws {
        for await status in end.stream {
            guard status != 0 else { return }
            let signal = status & 0x7F
            throw CommandFailure(
                .incomplete,
                signal == 0
                    ? "The command exited with status \((status >> 8) & 0xFF), so its output may be incomplete."
                    : "The command was ended by signal \(signal), so its output may be incomplete.")
        }
        throw CancellationError()
    }
}
