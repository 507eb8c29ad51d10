import TransferKit
import TransferOutput

/// Prints one line for each event that users need, for logs and pipes.
actor PlainProgress: ProgressDisplay {
    private let queue: TransferQueue
    private let terminal: Terminal
    private var names: [SessionID: String] = [:]
    private var lines = EventLines()

    init(queue: TransferQueue, terminal: Terminal) {
        self.queue = queue
        self.terminal = terminal
    }

    func show(_ event: QueueEvent) async {
        if let id = event.session, names[id] == nil, EventDescription.line(of: event.kind, name: "") != nil {
            names[id] = try? await queue.status(of: id).name
        }
        let facts = await EventFacts(of: event.kind, in: queue)
        guard let line = lines.line(of: event.kind, name: event.session.map(name), facts: facts) else { return }
        await terminal.write(line)
        switch event.kind {
        case .completed(let id), .failed(let id, _): names[id] = nil
        case .removed(let ids, _), .draftsRemoved(let ids): for id in ids { names[id] = nil }
        default: break
        }
    }

    func note(_ line: String) async { await terminal.write(line) }

    func finish(_ summary: RunSummary) async {
        await terminal.draw(summary.lines)
    }

    private func name(_ id: SessionID) -> String {
        "\(SessionDescription.shortID(id)) \(names[id] ?? "")".withoutControlCharacters
    }
}
