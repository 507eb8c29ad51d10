import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension SSHServerProcess {
    /// - Returns: The server, once it listens; nil if the port was taken meanwhile.
    static func start(_ configuration: URL, log: URL, preload: URL?, port: UInt16) throws -> GuardedProcess? {
        try? FileManager.default.removeItem(at: log)
        // sshd wants to be called by its absolute path, as it starts itself anew for each connection.
        let process = try GuardedProcess(
            ["/usr/sbin/sshd", "-D", "-e", "-f", configuration.path], log: log,
            environment: preload.map { ["LD_PRELOAD": $0.path] } ?? [:])
        // It tells when it listens, or why it does not; a server with a fault in its configuration says so at once.
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
