import ArgumentParser
import TransferOutput

/// Limits for the lifetime of a process that runs the queue. They override the limits of `queue set`.
struct RunLimitOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Concurrent sessions (default: the queue's limit).", valueName: "number"))
    var maxSessions: Int?

    /// The former name of `maxSessions`.
    @Option(parsing: .unconditional, help: .hidden)
    var jobs: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The minimum of free space (default: the queue's).",
            valueName: "size"))
    var minFree: ByteCount?

    func validate() throws {
        if maxSessions != nil, jobs != nil { throw ValidationError("--max-sessions and --jobs can't be used together.") }
        for (option, number) in [("--max-sessions", maxSessions), ("--jobs", jobs)] {
            if let number, number < 1 { throw ValidationError("\(option) must be at least 1, not \(number).") }
        }
    }

    var concurrentSessions: Int? { maxSessions ?? jobs }

    var arguments: [String] {
        (concurrentSessions.map { ["--max-sessions", "\($0)"] } ?? []) + (minFree.map { ["--min-free", "\($0.bytes)"] } ?? [])
    }
}
