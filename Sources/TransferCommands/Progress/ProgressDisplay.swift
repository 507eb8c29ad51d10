import ArgumentParser
import Foundation
import TransferKit

/// Shows what a queue does.
protocol ProgressDisplay: Sendable {
    /// Called once, when all events from now on are sure to be taken.
    func begin() async

    /// Takes the next event. What it costs holds up no transfer.
    func take(_ event: QueueEvent) async

    /// Called once, after the last event.
    func finish(_ summary: RunSummary) async
}

extension ProgressDisplay {
    func begin() async {}
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
            // What moves the cursor has no place in a file or a pipe.
            guard context.terminal.isTerminal else { return await ProgressStyle.plain.display(of: queue) }
            // no-color.org: present and not empty.
            let hasColor = environment["NO_COLOR", default: ""].isEmpty
            return BarProgress(queue: queue, terminal: context.terminal, hasColor: hasColor)
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
