import ArgumentParser
import TransferKit

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Runs the queue until nothing is left that can go on without a person.",
        discussion: """
            Waits for what is due later, such as the next attempt after a failure. Ctrl-C ends it cleanly: what was confirmed is kept, and \
            the next run goes on from there.

            Example: transferq run --jobs 2 --progress plain
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("How many sessions may run at once, for this run only.", valueName: "number"))
    var jobs: Int?

    @Flag(help: "Go on when nothing is left, until Ctrl-C.")
    var forever = false

    @Flag(help: "Don't wait for what is due later.")
    var noWait = false

    @Option(help: "How to show progress: \(ProgressStyle.allCases.map(\.rawValue).joined(separator: ", ")).")
    var progress = ProgressStyle.auto

    func validate() throws {
        if let jobs, jobs < 1 { throw ValidationError("--jobs takes a number from 1 on.") }
        if forever, noWait { throw ValidationError("--forever and --no-wait exclude each other.") }
        if common.json, progress != .auto, progress != .json, progress != .none {
            throw ValidationError("--json and --progress \(progress.rawValue) exclude each other.")
        }
    }

    func run() async throws {
        let style = common.json && progress == .auto ? .json : progress
        let signals = TerminationSignals()
        defer { signals.cancel() }
        let received = signals.received
        let end: ForegroundRun.End = forever ? .never : noWait ? .whenNothingCanStart : .whenIdle
        let status = try await common.withOwnedQueue(sessionLimit: jobs) { queue in
            try await ForegroundRun(queue: queue, style: style, end: end).run(until: received)
        }
        if status != .done { throw status }
    }
}
