import Foundation
package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The process that started an agent, as the agent sees it: a pipe to tell how the start went.
package struct AgentStarter: Sendable {
    private let descriptor: FileDescriptor

    package init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
        // A program that a transport starts would keep it open, and the starter waiting.
        _ = fcntl(descriptor.rawValue, F_SETFD, FD_CLOEXEC)
    }

    /// What the agent tells: one line of JSON.
    struct Report: Codable {
        /// Nil if it is ready.
        var status: Int32?
        var message: String?
    }

    func tellReady() { tell(Report()) }

    func tellFailure(_ status: ExitStatus, _ message: String) { tell(Report(status: status.rawValue, message: message)) }

    private func tell(_ report: Report) {
        // A starter that is gone does not want to know.
        if let data = try? JSONEncoder().encode(report) { _ = try? descriptor.writeAll(data) }
        try? descriptor.close()
    }
}
