import ArgumentParser
import TransferKit
import TransferOutput

struct AccountLimitOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Maximum concurrent sessions; 0 means no limit.", valueName: "number"))
    var maxSessions: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Maximum bytes/s, such as 500K; 0 means no limit.",
            valueName: "rate"))
    var rate: ByteCount?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Rates by time; see transferq queue set --help.", valueName: "rules"), transform: TimetableArgument.parse)
    var timetable: TimetableArgument?

    func validate() throws {
        if let maxSessions, maxSessions < 0 { throw ValidationError("--max-sessions must be at least 0, not \(maxSessions).") }
    }

    var isEmpty: Bool { maxSessions == nil && rate == nil && timetable == nil }

    func apply(to account: inout Account) {
        if let maxSessions { account.maxConcurrentSessions = maxSessions == 0 ? nil : maxSessions }
        if let rate { account.rateLimit = rate.limit }
        if let timetable { account.timetable = timetable.timetable }
    }
}
