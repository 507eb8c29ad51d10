import ArgumentParser
import SystemPackage
import TransferControl
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

struct AgentRunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Is the agent, in the foreground: for service managers such as systemd.",
        discussion: """
            Runs the queue until SIGTERM, SIGINT or "transferq agent stop", logs to standard error, and ends with 0 then.

            Example: transferq agent run
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("How many sessions may run at once, for as long as the agent runs.", valueName: "number"))
    var jobs: Int?

    @Option(help: ArgumentHelp("A descriptor that is told when the agent is ready, and then closed.", visibility: .private))
    var readyDescriptor: Int32?

    func validate() throws {
        if let jobs, jobs < 1 { throw ValidationError("--jobs takes a number from 1 on, and not \(jobs).") }
    }

    func run() async throws {
        let starter = readyDescriptor.map { AgentStarter(FileDescriptor(rawValue: $0)) }
        do {
            try await Agent(common: common, jobs: jobs, starter: starter).run()
        } catch {
            guard let starter else { throw error }
            // The process that started this one says so, and ends as this one would have.
            let (status, message) = CommandLineProgram.explanation(of: error)
            starter.tellFailure(status, message)
            throw status
        }
    }
}
