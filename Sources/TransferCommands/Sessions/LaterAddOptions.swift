import ArgumentParser

/// What this version of the command can't do for sessions, whatever the queue can.
struct LaterAddOptions: ParsableArguments {
    @Flag var download = false
    @Flag var stdin = false
    @Option var at: String?
    @Flag var next = false
    @Flag var now = false
    @Flag var hold = false
    @Option var after: String?
    @Option var notBefore: String?
    @Option var rate: String?
    @Option var verify: Verification?
    @Option var overwrite: String?
    @Option var parallel: Int?
    @Option var chunk: String?
    @Option var dedupe: String?

    enum Verification: String, ExpressibleByArgument, CaseIterable {
        case none
        case size
        case checksum
    }

    func validate() throws {
        if let parallel, parallel < 1 { throw ValidationError("--parallel takes a number from 1 on.") }
        try LaterOptions.refuse([
            ("--download", download), ("--stdin", stdin), ("--at", at != nil), ("--next", next), ("--now", now), ("--hold", hold),
            ("--after", after != nil), ("--not-before", notBefore != nil), ("--rate", rate != nil),
            ("--verify checksum", verify == .checksum),
            ("--overwrite", overwrite != nil), ("--parallel above 1", (parallel ?? 1) > 1), ("--chunk", chunk != nil),
            ("--dedupe", dedupe != nil),
        ])
    }
}
