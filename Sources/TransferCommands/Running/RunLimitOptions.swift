import ArgumentParser

/// Limits for the lifetime of a process that runs the queue. They override the limits of `queue set`.
struct RunLimitOptions: ParsableArguments {
    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Concurrent sessions (default: the queue's limit).", valueName: "number"))
    var maxSessions: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The minimum of free space (default: the queue's).",
            valueName: "size"))
    var minFree: ByteCount?

    func validate() throws {
        if let maxSessions, maxSessions < 1 { throw ValidationError("--max-sessions must be at least 1, not \(maxSessions).") }
    }

    /// The given options, as arguments.
    var arguments: [String] {
        (maxSessions.map { ["--max-sessions", "\($0)"] } ?? []) + (minFree.map { ["--min-free", "\($0.bytes)"] } ?? [])
    }
}
