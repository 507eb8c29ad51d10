import Foundation
import TransferControl
import TransferKit

/// Draws a line per running session and one for the whole, below what scrolls.
actor BarProgress: ProgressDisplay {
    private static let interval = Duration.milliseconds(100)

    private let queue: TransferQueue
    private let terminal: Terminal
    private let bars: BarLayout
    private var running: [(id: SessionID, name: String, statistics: SessionStatistics)] = []
    /// Of those that have begun and not ended: a session gives its place among ``running`` up before it completes or fails.
    private var names: [SessionID: String] = [:]
    private var total = RunTotal()
    private var scrolled: [String] = []
    private var isDirty = false
    private var ticker: Task<Void, Never>?

    init(queue: TransferQueue, terminal: Terminal, hasColor: Bool) async {
        self.queue = queue
        self.terminal = terminal
        bars = BarLayout(hasColor: hasColor)
        await load()
    }

    func take(_ event: QueueEvent) async {
        switch event.kind {
        case .didActivate(let id):
            guard let status = try? await queue.session(id) else { return }
            running.removeAll { $0.id == id }
            running.append((id, status.name, status.statistics))
            names[id] = status.name
        case .progress(let id, let statistics):
            guard let index = running.firstIndex(where: { $0.id == id }) else { return }
            running[index].statistics = statistics
            total.update(id, bytes: statistics.bytesSent)
        case .completed(let id), .failed(let id, _), .didDeactivate(let id):
            end(id, event.kind)
        case .removed(let ids, _), .cancelled(let ids):
            for id in ids { end(id, event.kind) }
        case .gap:
            await load()
        default:
            if let line = EventDescription.line(of: event.kind, name: event.session.map(name)) { scrolled.append(line) }
        }
        isDirty = true
        startTicking()
    }

    func finish(_ summary: RunSummary) async {
        ticker?.cancel()
        let lines = scrolled + summary.lines
        scrolled = []
        await terminal.draw(lines, footer: [])
    }

    /// Reads the queue: once at the beginning, and again when events were missed.
    private func load() async {
        total = RunTotal()
        running = []
        names = [:]
        try? await queue.forEachSession { session in
            switch session.state {
            case .waiting: total.expect(session)
            case .running:
                total.expect(session)
                running.append((session.id, session.name, session.statistics))
                names[session.id] = session.name
            case .completed, .failed, .paused, .held, .cancelled: break
            }
            return true
        }
    }

    private func end(_ id: SessionID, _ kind: QueueEvent.Kind) {
        switch kind {
        case .completed:
            total.finish(id)
            scrolled.append(bars.finished(name(id), isCompleted: true))
        case .failed(_, let error):
            total.finish(id)
            scrolled.append(bars.finished("\(name(id)): \(error)".withoutControlCharacters, isCompleted: false))
        case .removed, .cancelled:
            total.finish(id)
        default:
            running.removeAll { $0.id == id }
            return
        }
        running.removeAll { $0.id == id }
        names[id] = nil
    }

    private func name(_ id: SessionID) -> String {
        "\(SessionDescription.shortID(id)) \(names[id] ?? "")".withoutControlCharacters
    }

    /// Draws at most once an interval, however many events come.
    private func startTicking() {
        guard ticker == nil else { return }
        ticker = Task {
            await draw()
            try? await Task.sleep(for: Self.interval, clock: .continuous)
            ticker = nil
            if isDirty, !Task.isCancelled { startTicking() }
        }
    }

    private func draw() async {
        guard !Task.isCancelled else { return }
        isDirty = false
        let lines = scrolled
        scrolled = []
        let (width, height) = terminal.size
        // What is above the screen can't be drawn over.
        let room = max(0, height - 2)
        let shown = running.count > room ? max(0, room - 1) : running.count
        var footer = running.prefix(shown).map { bars.line($0.name, $0.statistics, width: width) }
        if shown < running.count { footer.append("… and \(running.count - shown) more".fitted(to: width - 1)) }
        footer.append(bars.total(total, rate: running.compactMap(\.statistics.rate).reduce(0, +), width: width))
        await terminal.draw(lines, footer: footer)
    }
}
