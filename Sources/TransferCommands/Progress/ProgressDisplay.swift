import ArgumentParser
import Foundation
import TransferKit

protocol ProgressDisplay: Sendable {
    /// Called once, after the subscription to events and before the first event.
    func begin() async

    /// Shows the next event. Slow calls don't delay transfers.
    func show(_ event: QueueEvent) async

    /// Shows a line that is not about an event.
    func note(_ line: String) async

    /// Called once, after the last event.
    func finish(_ summary: RunSummary) async
}

extension ProgressDisplay {
    func begin() async {}
    func note(_ line: String) async {}
}

enum ProgressStyle: String, ExpressibleByArgument, CaseIterable {
    case auto
    case bars
    case plain
    case json
    case none

    /// Empty, because the help text of `--progress` already lists the values.
    static var allValueStrings: [String] { [] }

    /// Creates the display for a queue. Without a terminal, `auto` and `bars` select `plain`. On a terminal that can't move the
    /// cursor, only `auto` selects `plain`.
    func display(of queue: TransferQueue) async -> any ProgressDisplay {
        let context = CommandContext.current
        switch self {
        case .auto:
            // terminfo(5): a dumb terminal has no cursor movement.
            let canDraw = context.terminal.isTerminal && ProcessInfo.processInfo.environment["TERM"] != "dumb"
            return await (canDraw ? ProgressStyle.bars : .plain).display(of: queue)
        case .bars:
            // Files and pipes must not receive cursor movements.
            guard context.terminal.isTerminal else { return await ProgressStyle.plain.display(of: queue) }
            return BarProgress(queue: queue, terminal: context.terminal, hasColor: Terminal.hasColor)
        case .plain: return PlainProgress(queue: queue, terminal: context.terminal)
        case .json: return JSONProgress(order: await SessionIndices(queue.sessionIDs()), output: context.output)
        case .none: return NoProgress()
        }
    }
}

struct NoProgress: ProgressDisplay {
    func show(_ event: QueueEvent) async {}
    func finish(_ summary: RunSummary) async {}
}
