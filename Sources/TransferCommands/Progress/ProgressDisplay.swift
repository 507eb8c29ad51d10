import ArgumentParser
import Foundation
import TransferKit

/// Shows what a queue does.
protocol ProgressDisplay: Sendable {
    /// Takes the next event. What it costs holds up no transfer.
    func take(_ event: QueueEvent) async

    /// Called once, after the last event.
    func finish(_ summary: RunSummary) async
}

/// How progress is shown.
enum ProgressStyle: String, ExpressibleByArgument, CaseIterable {
    case auto
    case bars
    case plain
    case json
    case none

    func display(of queue: TransferQueue) async -> any ProgressDisplay {
        let context = CommandContext.current
        let environment = ProcessInfo.processInfo.environment
        switch self {
        case .auto:
            // terminfo(5): a dumb terminal has no cursor movement.
            let canDraw = context.terminal.isTerminal && environment["TERM"] != "dumb"
            return await (canDraw ? ProgressStyle.bars : .plain).display(of: queue)
        case .bars:
            // no-color.org: present and not empty.
            let hasColor = context.terminal.isTerminal && environment["NO_COLOR", default: ""].isEmpty
            return await BarProgress(queue: queue, terminal: context.terminal, hasColor: hasColor)
        case .plain: return PlainProgress(queue: queue, terminal: context.terminal)
        case .json: return JSONProgress(order: await SessionIndices(queue.sessionIDs()), output: context.output)
        case .none: return NoProgress()
        }
    }
}

struct NoProgress: ProgressDisplay {
    func take(_ event: QueueEvent) async {}
    func finish(_ summary: RunSummary) async {}
}
