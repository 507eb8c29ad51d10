import ArgumentParser
import TransferKit

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Runs the queue until nothing is left that can go on without a person.",
        discussion: """
            Waits for what is due later, such as the next attempt after a failure. Ctrl-C ends it cleanly: what was confirmed is kept, and \
            the next run goes on from there.
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: .hidden)
    var jobs: Int?

    @Flag(help: .hidden)
    var forever = false

    @Flag(help: "Don't wait for what is due later.")
    var noWait = false

    @Option(help: "How to show progress: \(ProgressStyle.allCases.map(\.rawValue).joined(separator: ", ")).")
    var progress = ProgressStyle.auto

    func validate() throws {
        if let jobs, jobs < 1 { throw ValidationError("--jobs takes a number from 1 on.") }
        try LaterOptions.refuse([("--jobs above 1", (jobs ?? 1) > 1), ("--forever", forever)])
        if common.json, progress != .auto, progress != .json, progress != .none {
            throw ValidationError("--json and --progress \(progress.rawValue) exclude each other.")
        }
    }

    func run() async throws {
        let style = common.json && progress == .auto ? .json : progress
        let signals = TerminationSignals()
        defer { signals.cancel() }
        let received = signals.received
        let status = try await common.withQueue { queue in
            try await ForegroundRun(queue: queue, style: style, waits: !noWait).run(until: received)
        }
        if status != .done { throw status }
    }
}
