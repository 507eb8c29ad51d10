import Foundation
import TransferCore
import TransferKit

/// Prints one line per change: for logs and pipes.
actor PlainProgress: ProgressDisplay {
    private let queue: TransferQueue
    private let terminal: Terminal
    private var names: [SessionID: String] = [:]

    init(queue: TransferQueue, terminal: Terminal) {
        self.queue = queue
        self.terminal = terminal
    }

    func take(_ event: QueueEvent) async {
        if case .started(let id) = event.kind, names[id] == nil { names[id] = try? await queue.session(id).name }
        guard let line = EventDescription.line(of: event.kind, name: event.session.map(name)) else { return }
        await terminal.write(line)
        switch event.kind {
        case .completed(let id), .failed(let id, _), .removed(let id, _): names[id] = nil
        default: break
        }
    }

    func finish(_ summary: RunSummary) async {
        await terminal.draw(summary.lines)
    }

    private func name(_ id: SessionID) -> String {
        "\(SessionDescription.shortID(id)) \(names[id] ?? "")".withoutControlCharacters
    }
}

/// Events as lines for people.
enum EventDescription {
    /// A line, or nil for what is of no interest or shown in another way.
    static func line(of kind: QueueEvent.Kind, name: String?) -> String? {
        let name = name ?? ""
        return switch kind {
        case .started: "started    \(name)"
        case .completed: "completed  \(name)"
        case .failed(_, let error): "failed     \(name): \(error)"
        case .attemptFailed(_, let error, let retryAt):
            "retrying   \(name) at \(retryAt.formatted(.iso8601)): \(error)"
        case .itemFailed(_, let position, let error): "gave up    \(name), file \(position + 1): \(error)"
        case .itemRestarted(_, let position, let error): "restarted  \(name), file \(position + 1): \(error)"
        case .stopped: "stopped    \(name)"
        case .accountBlocked(let account, let error): "blocked    account \"\(account)\": \(error)"
        case .storageFailed(let error): "store      \(error.message)"
        default: nil
        }
    }
}
