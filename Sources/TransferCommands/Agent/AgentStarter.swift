import Foundation
package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The agent's end of a pipe to the process that started the agent. That process waits for the result of the start.
package struct AgentStarter: Sendable {
    private let descriptor: FileDescriptor

    package init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
        // Without close-on-exec, a program started by a transport would keep the pipe open, and the starting process would keep waiting.
        _ = fcntl(descriptor.rawValue, F_SETFD, FD_CLOEXEC)
    }

    /// The result of the start, sent as one line of JSON.
    struct Report: Codable {
        /// The exit status of an agent that failed to start; nil if the agent is ready.
        var status: Int32?
        var message: String?
    }

    func reportReady() { send(Report()) }

    func reportFailure(_ status: ExitStatus, _ message: String) { send(Report(status: status.rawValue, message: message)) }

    private func send(_ report: Report) {
        // Errors don't matter: the starting process may have exited.
        if let data = try? JSONEncoder().encode(report) { _ = try? descriptor.writeAll(data) }
        try? descriptor.close()
    }
}
