import ArgumentParser
import TransferControl
import TransferKit

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Runs the queue until nothing is left that can go on without a person.",
        discussion: """
            Waits for what is due later, such as the next attempt after a failure. Ctrl-C ends it cleanly: what was confirmed is kept, and \
            the next run goes on from there. A second Ctrl-C ends it at once.

            Ends with 0 if all sessions that it ran completed; with 1 if one failed, or needs a person to go on: one that is paused, was held \
            after it had begun, or can't start. One that was cancelled or removed meanwhile counts as neither.

            What cancelled and removed sessions left at servers is removed before the end, as far as that is done within 30 seconds; what is \
            left is told, and is no failure.

            Example: transferq run --jobs 2 --progress plain
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        parsing: .unconditional, help: ArgumentHelp("How many sessions may run at once, for this run only.", valueName: "number"))
    var jobs: Int?

    @Flag(help: "Go on when nothing is left, until Ctrl-C.")
    var forever = false

    @Flag(help: "Don't wait for what is due later.")
    var noWait = false

    @Option(help: "How to show progress: \(ProgressStyle.allCases.map(\.rawValue).joined(separator: ", ")).")
    var progress = ProgressStyle.auto

    func validate() throws {
        if let jobs, jobs < 1 { throw ValidationError("--jobs takes a number from 1 on, and not \(jobs).") }
        if forever, noWait { throw ValidationError("--forever and --no-wait exclude each other.") }
        if common.json, progress != .auto, progress != .json, progress != .none {
            throw ValidationError("--json and --progress \(progress.rawValue) exclude each other.")
        }
    }

    func run() async throws {
        ProcessSecrecy.begin()
        let style = common.json && progress == .auto ? .json : progress
        let terminal = CommandContext.current.terminal
        let signals = TerminationSignals {
            terminal.post("transferq: Interrupted; what runs ends cleanly. Once more ends it at once.")
        }
        defer { signals.cancel() }
        let end: ForegroundRun.End = forever ? .never : noWait ? .whenNothingCanStart : .whenIdle
        let queue = try await openedQueue(signals)
        let server = ControlServer.open(for: queue, as: .run, logger: common.logger)
        let status: ExitStatus
        do {
            status = try await ForegroundRun(queue: queue, server: server, style: style, end: end).run(until: signals)
        } catch {
            await queue.shutdown()
            throw error
        }
        if status != .done { throw status }
    }

    /// Opens the queue. A signal ends the wait for another owner too.
    private func openedQueue(_ signals: TerminationSignals) async throws -> TransferQueue {
        let opening = Task { [common, jobs] in
            try await common.openedQueueToRun(sessionLimit: jobs)
        }
        signals.whenReceived { opening.cancel() }
        do {
            return try await opening.value
        } catch {
            throw signals.isReceived ? ExitStatus.interrupted : error
        }
    }
}
