import ArgumentParser
import TransferControl
import TransferKit

struct RunCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Runs the queue until no session can continue.",
        discussion: """
            Waits for sessions that start later, such as retries. Ctrl-C stops the run cleanly; a second Ctrl-C exits immediately. Exits with 1 if a \
            session failed or needs user action, and with 130 after Ctrl-C.

            Example: transferq run --max-sessions 2 --progress plain
            """)

    @OptionGroup var common: CommonOptions

    @OptionGroup var limits: RunLimitOptions

    @Flag(help: "Keep running when the queue is idle, until Ctrl-C.")
    var forever = false

    @Flag(help: "Don't wait for sessions that start later.")
    var noWait = false

    @Option(help: ArgumentHelp("auto, bars, plain, json or none", valueName: "style"), completion: .list(Self.styles))
    var progress = ProgressStyle.auto

    private static let styles = ProgressStyle.allCases.map(\.rawValue)

    func validate() throws {
        if forever, noWait { throw ValidationError("--forever and --no-wait can't be used together.") }
        if common.json, progress != .auto, progress != .json, progress != .none {
            throw ValidationError("--json and --progress \(progress.rawValue) can't be used together.")
        }
    }

    func run() async throws {
        ProcessMemoryProtection.enable()
        let style = progress == .auto ? (common.json ? .json : common.quiet ? .none : .auto) : progress
        let terminal = CommandContext.current.terminal
        let signals = TerminationSignals {
            terminal.post("transferq: Interrupted. Stopping cleanly; interrupt again to exit immediately.")
        }
        defer { signals.cancel() }
        let end: ForegroundRun.EndCondition = forever ? .never : noWait ? .whenNothingCanStart : .whenIdle
        let queue = try await openedQueue(signals, style)
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

    /// Opens the queue. A signal ends the wait for another process that owns the queue.
    private func openedQueue(_ signals: TerminationSignals, _ style: ProgressStyle) async throws -> TransferQueue {
        // The display shows each failure, so the log omits it.
        let logger = common.logger(omittingErrorsOf: style == .none ? .none : .all)
        let opening = Task { [common, limits] in
            try await common.openedQueueToRun(limits: limits, logger: logger)
        }
        signals.whenReceived { opening.cancel() }
        do {
            return try await opening.value
        } catch {
            throw signals.isReceived ? ExitStatus.interrupted : error
        }
    }
}
