import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension SSHServerProcess {
    /// - Returns: The server once it listens, or nil if another process has taken the port.
    static func start(_ configuration: URL, log: URL, preload: URL?, port: UInt16) throws -> GuardedProcess? {
        try? FileManager.default.removeItem(at: log)
        // sshd requires its absolute path, because it executes itself again for each connection.
        let process = try GuardedProcess(
            ["/usr/sbin/sshd", "-D", "-e", "-f", configuration.path], log: log,
            environment: preload.map { ["LD_PRELOAD": $0.path] } ?? [:])
        // It logs when it listens, or why it does not. A configuration error appears immediately.
        for _ in 0..<6_000 {
            let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            if text.contains("Server listening on") { return process }
            if text.contains("Address already in use") { return nil }
            if text.contains("fatal:") || text.contains("not found") || text.contains("error") || text.contains("Bad configuration") {
                throw DidNotStart(description: "sshd did not start; Tests/run installs it. It says: \(text)")
            }
            usleep(5_000)
        }
        throw DidNotStart(description: "sshd did not start within 30 seconds.")
    }
}
