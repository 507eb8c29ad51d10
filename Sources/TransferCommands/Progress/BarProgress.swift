import Foundation
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

/// Draws a progress bar for each running session and a bar for the total, below scrolling lines about events.
actor BarProgress: ProgressDisplay {
    private static let interval = Duration.milliseconds(100)

    private let queue: TransferQueue
    private let terminal: Terminal
    private let bars: BarLayout
    private struct Run {
        let id: SessionID
        var name: String
        var direction: TransferDirection
        var statistics: SessionStatistics
        /// Whether the last progress event left the byte counts unchanged.
        var isStill = false

        /// What the session waits for after its last byte; nil until that byte was transferred, and while the byte counts still change.
        var wait: BarLayout.FinalWait? { isStill && statistics.isSent ? (direction == .upload ? .server : .disk) : nil }
    }

    private var running: [Run] = []
    /// Includes sessions that have left ``running``, because the line about a session's end comes later and contains the session's name.
    private var names: [SessionID: String] = [:]
    private var total = RunTotal()
    private var undrawnLines: [String] = []
    private var lines = EventLines()
    private var isDirty = false
    private var ticker: Task<Void, Never>?

    init(queue: TransferQueue, terminal: Terminal, hasColor: Bool) {
        self.queue = queue
        self.terminal = terminal
        bars = BarLayout(hasColor: hasColor)
    }

    func begin() async {
        await load()
    }

    func show(_ event: QueueEvent) async {
        switch event.kind {
        case .didActivate(let id), .didStartRunning(let id):
            _ = lines.line(of: event.kind, name: nil)
            // A session that resumes after a pause has kept its slot, so no didActivate precedes its didStartRunning.
            guard let status = try? await queue.status(of: id) else { return }
            names[id] = status.name
            run(status)
        case .progress(let id, let statistics):
            guard let index = running.firstIndex(where: { $0.id == id }) else { return }
            let before = running[index].statistics
            running[index].isStill = before.bytesSent == statistics.bytesSent && before.bytesDone == statistics.bytesDone
            running[index].statistics = statistics
            if total.isPending(id) { total.expect(id, statistics) }
        case .completed(let id):
            let status = try? await queue.status(of: id)
            total.complete(id, status?.state == .completed ? status?.statistics : nil)
            scroll(event)
            forget([id])
        case .failed(let id, _):
            total.fail(id)
            scroll(event)
            forget([id])
        case .didDeactivate(let id):
            running.removeAll { $0.id == id }
        case .removed(let ids, _), .cancelled(let ids):
            forget(ids)
            for id in ids { total.exclude(id) }
        case .added(let ids, _):
            await reload(ids)
        case .updated(let id):
            await reload([id])
        case .changed(let ids, _):
            await reload(ids)
            await scroll(event, EventFacts(of: event.kind, in: queue))
        case .gap:
            scroll(event)
            await load()
        default:
            await scroll(event, EventFacts(of: event.kind, in: queue))
        }
        isDirty = true
        startTicking()
    }

    private func scroll(_ event: QueueEvent, _ facts: EventFacts = EventFacts()) {
        guard let line = lines.line(of: event.kind, name: event.session.map(name), facts: facts) else { return }
        undrawnLines.append(bars.colored(line, width: terminal.size.columns))
    }

    func note(_ line: String) {
        undrawnLines.append(bars.colored(line, width: terminal.size.columns))
        isDirty = true
        startTicking()
    }

    func finish(_ summary: RunSummary) async {
        ticker?.cancel()
        let lines = undrawnLines + bars.colored(summary, width: terminal.size.columns)
        undrawnLines = []
        await terminal.draw(lines, footer: [])
    }

    private func load() async {
        total = RunTotal()
        running = []
        names = [:]
        try? await queue.forEachSession { session in
            update(session)
            return true
        }
    }

    private func reload(_ ids: [SessionID]) async {
        guard ids.count > 100 else {
            for id in ids {
                guard let session = try? await queue.status(of: id) else { continue }
                names[id] = session.name
                update(session)
            }
            return
        }
        let changed = Set(ids)
        try? await queue.forEachSession { session in
            if changed.contains(session.id) { update(session) }
            return true
        }
    }

    private func update(_ session: SessionStatus) {
        switch session.state {
        case .waiting: total.expect(session.id, session.statistics)
        case .running: run(session)
        case .paused:
            // Lines about a paused session need its name.
            names[session.id] = session.name
            setAside(session.id)
        case .held, .cancelled: setAside(session.id)
        // Drafts never run. For sessions that end in this run, an event updates the total.
        case .completed, .failed, .draft: break
        }
    }

    private func run(_ session: SessionStatus) {
        // The session may have ended by now; a later event reports its end.
        guard session.state == .running else { return }
        names[session.id] = session.name
        total.expect(session.id, session.statistics)
        let run = Run(id: session.id, name: session.name, direction: session.direction, statistics: session.statistics)
        if let index = running.firstIndex(where: { $0.id == session.id }) { running[index] = run } else { running.append(run) }
    }

    /// Removes a session that runs only after a user action, such as a held session, from the bars and the total.
    private func setAside(_ id: SessionID) {
        total.exclude(id)
        running.removeAll { $0.id == id }
    }

    private func forget(_ ids: [SessionID]) {
        let gone = Set(ids)
        running.removeAll { gone.contains($0.id) }
        for id in ids { names[id] = nil }
    }

    private func name(_ id: SessionID) -> String {
        "\(SessionDescription.shortID(id)) \(names[id] ?? "")".withoutControlCharacters
    }

    /// Draws the bars, at most once per interval.
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
        let lines = undrawnLines
        undrawnLines = []
        let (width, height) = terminal.size
        // Lines that have scrolled off the screen can't be redrawn, so the bars must fit on the screen.
        let room = max(0, height - 2)
        let shown = running.count > room ? max(0, room - 1) : running.count
        var footer = running.prefix(shown).map { bars.line($0.name, $0.statistics, wait: $0.wait, width: width) }
        if shown < running.count { footer.append("… and \(running.count - shown) more".fitted(to: width - 1)) }
        // The total shows a wait only if no session transfers bytes or waits for its turn.
        let wait = total.isSent && running.allSatisfy { $0.wait != nil } ? running.first?.wait : nil
        footer.append(bars.total(total, running.map(\.statistics), wait: wait, width: width))
        await terminal.draw(lines, footer: footer)
    }
}
