import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension SSHServerProcess {
    /// Starts the server, and returns once it accepts connections. Blocks.
    ///
    /// - Returns: The server, or nil if another process has taken the port.
    static func start(_ configuration: URL, log: URL, preload: URL?) throws -> GuardedProcess? {
        try? FileManager.default.removeItem(at: log)
        // sshd requires its absolute path, because it executes itself again for each connection.
        let process = try GuardedProcess(
            ["/usr/sbin/sshd", "-D", "-e", "-f", configuration.path], log: log,
            environment: preload.map { ["LD_PRELOAD": $0.path] } ?? [:])
        // Waits until the server logs that it listens, or why it can't listen.
        for _ in 0..<6_000 {
            let text = (try? String(contentsOf: log, encoding: .utf8)) ?? ""
            if text.contains("Server listening on") { return process }
            if text.contains("Address already in use") { return nil }
            if text.contains("fatal:") || text.contains("not found") || text.contains("error") || text.contains("Bad configuration") {
                throw DidNotStart(description: "sshd did not start. Tests/run installs it. Its output: \(text)")
            }
            usleep(5_000)
        }
        throw DidNotStart(description: "sshd did not start within 30 seconds.")
    }
}
