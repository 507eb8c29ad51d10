import ArgumentParser
import TransferControl
import TransferKit
import TransferOutput

struct QueueSetCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "set", abstract: "Sets the limits of the queue permanently.",
        discussion: """
            The limits are stored. They apply to the process that runs the queue now, and to all later processes.

            Example: transferq queue set --max-sessions 2 --rate 5M
            Example: transferq queue set --keep-completed 7d
            Example: transferq queue set --timetable "mon-fri 08:00-18:00 2M; sat-sun 500K; * off"

            In a timetable, the first rule that includes the local time applies; off stands for no limit. At other times, --rate applies.
            """)

    @OptionGroup var common: CommonOptions

    @Option(parsing: .unconditional, help: ArgumentHelp("Concurrent sessions (default: 1).", valueName: "number"))
    var maxSessions: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Bytes/s, such as 500K or 2MB (default: 0, no limit).", valueName: "rate"))
    var rate: ByteCount?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The minimum of free space; 0 for none (default: 64M).",
            valueName: "size"))
    var minFree: ByteCount?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("Rates by time; see above (default: none).", valueName: "rules"),
        transform: TimetableArgument.parse)
    var timetable: TimetableArgument?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How many or how long: 100, 7d (default: forever).",
            valueName: "retention"))
    var keepCompleted: RetentionArgument?

    func validate() throws {
        if let maxSessions, maxSessions < 1 { throw ValidationError("--max-sessions must be at least 1, not \(maxSessions).") }
    }

    func run() async throws {
        guard maxSessions != nil || rate != nil || timetable != nil || minFree != nil || keepCompleted != nil else {
            throw ValidationError("There is nothing to set. Use --max-sessions, --rate, --timetable, --min-free or --keep-completed.")
        }
        let status = try await common.withQueue { queue in
            if let maxSessions { try await queue.setMaxConcurrentSessions(maxSessions, account: nil) }
            if let rate { try await queue.setRateLimit(rate.limit, account: nil) }
            if let timetable { try await queue.setTimetable(timetable.timetable, account: nil) }
            if let minFree { try await queue.setDiskFloor(minFree.bytes) }
            if let keepCompleted { try await queue.setRetention(keepCompleted.retention) }
            return try await queue.status()
        }
        if common.json { await CommandContext.current.output.write(JSONValue(limitsOf: status)) }
    }
}
