import Foundation
package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The agent's end of a pipe to the process that started the agent. That process waits for the result of the start.
package struct StartReporter: Sendable {
    private let descriptor: FileDescriptor

    /// Takes ownership of the descriptor.
    package init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
        // Without close-on-exec, a program started by a transport would keep the pipe open, and the starting process would keep waiting.
        _ = fcntl(descriptor.rawValue, F_SETFD, FD_CLOEXEC)
    }

    /// The result of the start, sent as a JSON object.
    struct StartResult: Codable {
        /// The exit status of an agent that failed to start; nil if the agent is ready.
        var status: Int32?
        /// The reason for the failure; nil if the agent is ready.
        var message: String?
    }

    /// Reports that the agent is ready, and closes the pipe. Call only one of the reporting methods, and only once.
    package func reportReady() { send(StartResult()) }

    /// Reports that the agent failed to start, and closes the pipe.
    func reportFailure(_ status: ExitStatus, _ message: String) { send(StartResult(status: status.rawValue, message: message)) }

    /// Reports the error of a failed start, and closes the pipe.
    ///
    /// - Returns: The exit status for this error.
    package func report(_ error: any Error) -> Int32 {
        let (status, message) = CommandLineProgram.explanation(of: error)
        reportFailure(status, message)
        return status.rawValue
    }

    /// Detaches this process from the terminal and its signals (setsid(2)). The working directory becomes `/`, so that other file systems
    /// can be unmounted.
    ///
    /// - Throws: A `CommandFailure` if the working directory can't be changed.
    package static func detach() throws {
        _ = setsid()
        signal(SIGHUP, SIG_IGN)
        guard unsafe chdir("/") == 0 else {
            throw CommandFailure(.storage, "Cannot change to the root folder (\(Errno(rawValue: errno))).")
        }
    }

    private func send(_ result: StartResult) {
        // Ignores errors, because the starting process may have exited.
        if let data = try? JSONEncoder().encode(result) { _ = try? descriptor.writeAll(data) }
        try? descriptor.close()
    }
}
