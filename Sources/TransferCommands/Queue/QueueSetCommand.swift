import ArgumentParser
import TransferControl

struct QueueSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Sets the limits of the queue, for now and for all runs to come.",
        discussion: "Example: transferq queue set --max-sessions 2 --rate 5M")

    @OptionGroup var common: CommonOptions

    @Option(parsing: .unconditional, help: ArgumentHelp("How many sessions may run at once.", valueName: "number"))
    var maxSessions: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Bytes per second for all of them, with K, M or G for the binary units; 0 for no limit.", valueName: "rate"))
    var rate: ByteCount?

    func validate() throws {
        guard maxSessions != nil || rate != nil else { throw ValidationError("Nothing is to be set; give --max-sessions or --rate.") }
        if let maxSessions, maxSessions < 1 { throw ValidationError("--max-sessions takes a number from 1 on, and not \(maxSessions).") }
    }

    func run() async throws {
        let status = try await common.withQueue { queue in
            if let maxSessions { try await queue.setSessionLimit(maxSessions, account: nil) }
            if let rate { try await queue.setRateLimit(rate.limit, account: nil) }
            return try await queue.status()
        }
        if common.json { await CommandContext.current.output.write(JSONValue(limitsOf: status)) }
    }
}
