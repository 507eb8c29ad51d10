import ArgumentParser
import SystemPackage
import TransferControl
import TransferKit
import TransferOutput

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

struct AgentRunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Runs the agent in the foreground, for systemd.",
        discussion: """
            Runs the queue until SIGTERM, SIGINT, SIGHUP or "transferq agent stop", and then exits with status 0. Logs to standard error.

            Example: transferq agent run
            """)

    @OptionGroup var common: CommonOptions

    @OptionGroup var limits: RunLimitOptions

    @OptionGroup var web: AgentWebOptions

    /// Only `agent start` passes this option.
    @Option(parsing: .unconditional, help: ArgumentHelp("The size at which the log is rotated.", visibility: .private))
    var logSize: ByteCount?

    @Option(help: ArgumentHelp("The file descriptor on which the agent reports readiness.", visibility: .private))
    var readyDescriptor: Int32?

    func run() async throws {
        let starter = readyDescriptor.map { StartReporter(FileDescriptor(rawValue: $0)) }
        do {
            try await Agent(
                common: common, limits: limits, web: web, logSize: logSize.map { Int(clamping: $0.bytes) } ?? RotatingLog.defaultLimit,
                starter: starter
            ).run()
        } catch {
            guard let starter else { throw error }
            // The process that started this agent prints the message and exits with the same status.
            let (status, message) = CommandLineProgram.explanation(of: error)
            starter.reportFailure(status, message)
            throw status
        }
    }
}
