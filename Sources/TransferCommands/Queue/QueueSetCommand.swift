import ArgumentParser
import TransferControl
import TransferKit

struct QueueSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Sets the limits of the queue permanently.",
        discussion: "Example: transferq queue set --max-sessions 2 --rate 5M")

    @OptionGroup var common: CommonOptions

    @Option(parsing: .unconditional, help: ArgumentHelp("The maximum number of concurrent sessions.", valueName: "number"))
    var maxSessions: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The rate limit in bytes per second for all sessions, with K, M or G for binary units; 0 for no limit.", valueName: "rate"))
    var rate: ByteCount?

    func validate() throws {
        guard maxSessions != nil || rate != nil else { throw ValidationError("There is nothing to set. Use --max-sessions or --rate.") }
        if let maxSessions, maxSessions < 1 { throw ValidationError("--max-sessions must be at least 1, not \(maxSessions).") }
    }

    func run() async throws {
        let status = try await common.withQueue { queue in
            if let maxSessions { try await queue.setMaxConcurrentSessions(maxSessions, account: nil) }
            if let rate { try await queue.setRateLimit(rate.limit, account: nil) }
            return try await queue.status()
        }
        if common.json { await CommandContext.current.output.write(JSONValue(limitsOf: status)) }
    }
}
