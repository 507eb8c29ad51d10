import ArgumentParser
import Foundation
import TransferControl
import TransferKit
import TransferOutput

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Prints recorded events, then new events.",
        discussion: """
            Ends when the owner releases the queue. If no process owns the queue, ends after the last recorded event. With --follow, waits for \
            the next owner instead. On a fleet, runs until it is interrupted; with --follow, even while the database is unreachable. \
            With --verbose, also prints the steps of each run; --json prints all events.

            --exec runs a program for each event, with the event as JSON on its standard input. --webhook sends the same JSON with POST, with \
            the headers and the signature of Standard Webhooks. Events arrive in order. An event counts as handled when the program exits with \
            0, or the server responds with 2xx. Otherwise, the event is repeated after 1 s, and then after growing delays of at most \
            5 min. The last handled event is stored, so a restarted hook loses no event, and can repeat one. A new hook begins with new events, or \
            after --since.

            Example: transferq watch --json --since 120
            Example: transferq watch --tail 20
            Example: transferq watch --follow
            Example: transferq watch --follow --event completed,failed --exec ./notify -- --urgent
            Example: transferq watch --follow --webhook https://example.com/hook --secret-file key
            """)

    @OptionGroup var common: CommonOptions

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Events after this revision, or now (default: 0, all).", valueName: "revision"))
    var since: Start?

    @Option(
        parsing: .unconditional, help: ArgumentHelp("The maximum number of recorded events to print.", valueName: "number"))
    var tail: UInt64?

    @Flag(help: "Wait for the next owner instead of ending.")
    var follow = false

    @Option(help: ArgumentHelp("Only these events, such as completed,failed.", valueName: "names"))
    var event: EventNames?

    @OptionGroup var hooks: HookOptions

    /// The revision after which to print events.
    enum Start: ExpressibleByArgument {
        case revision(UInt64)
        case now

        init?(argument: String) {
            guard argument != "now" else {
                self = .now
                return
            }
            guard let revision = UInt64(argument) else { return nil }
            self = .revision(revision)
        }
    }

    /// The delay between attempts while owners exit without sending events. The first retry is immediate.
    private static let retryDelay = Duration.milliseconds(50)

    /// The state of the command, kept when the owner of the queue changes.
    private struct Progress {
        var indices: SessionIndices
        var names: [SessionID: String] = [:]
        var lines = EventLines()
        /// The revision of the last printed or handled event.
        var last: UInt64
        /// The start of the command. For earlier events, the reason why a session waited is unknown.
        let startedAt = Date()
        /// Handles the events instead of printing them; nil without a hook.
        var hook: EventHook?
        /// The kept lines of `--tail`, and the revision of the last recorded event, after which the lines are printed. Nil if lines are printed
        /// immediately.
        var tail: (lines: [String], revision: UInt64)?
    }

    /// The maximum number of recorded events to read together from a queue without an owner. The queue is closed while the hook handles these
    /// events, so other commands can use the queue.
    private static let batchSize = 1_000

    func validate() throws {
        if since != nil, tail != nil { throw ValidationError("--since and --tail can't be used together.") }
    }

    private func start() async throws -> UInt64 {
        if case .revision(let revision) = since { return revision }
        guard since != nil || tail != nil else { return 0 }
        let revision = try await common.withQueue { try await $0.status().revision }
        return revision - min(revision, tail ?? 0)
    }

    /// Opens the hook. A hook that has run before continues after its last handled event.
    private func openHook() async throws -> (hook: EventHook, since: UInt64)? {
        guard hooks.isGiven else { return nil }
        guard CommandContext.current.queue == nil else {
            throw CommandFailure(
                .usage,
                "--exec and --webhook can't be used with --fleet. Pipe the output of watch --follow --json to a program instead.")
        }
        let folder = try common.folder()
        // Creates a missing storage folder.
        _ = try await common.withQueue { try await $0.status().revision }
        guard let hook = try await hooks.open(in: folder, warn: { [common] in await common.note($0) }) else { return nil }
        if let revision = hook.revision { return (hook, revision) }
        let beginsWithNewEvents = since == nil && tail == nil
        let revision = try await beginsWithNewEvents ? common.withQueue { try await $0.status().revision } : start()
        // After this call, no event is lost, even if this process is killed before it has handled one.
        try await hook.store(revision)
        return (hook, revision)
    }

    func run() async throws {
        let opened = try await openHook()
        // Not every recorded event results in a line. To count the printed lines for --tail, read all recorded events.
        let last = if opened == nil, tail != nil { try await common.withQueue { try await $0.status().revision } } else { UInt64(0) }
        let since = if let opened { opened.since } else if last > 0 { UInt64(0) } else { try await start() }
        // The indices of sessions are known only if all events are read, from the first one on.
        var progress = Progress(indices: SessionIndices(since == 0 ? [] : nil), last: since, hook: opened?.hook)
        if last > 0 { progress.tail = ([], last) }
        if let queue = CommandContext.current.queue {
            return try await watch(queue, &progress)
        }
        var hasLostOwner = false
        while true {
            let lastBefore = progress.last
            switch try await common.reachedQueue() {
            case .owned(let queue) where opened != nil:
                let events = try await CommonOptions.closing(queue) { try await Self.recorded(in: $0, after: lastBefore) }
                for event in events { try await handle(event, nil, &progress) }
                if !events.isEmpty { continue }
            case .owned(let queue):
                progress = try await CommonOptions.closing(queue) { [progress] queue in
                    var progress = progress
                    try await printLog(of: queue, &progress)
                    return progress
                }
            case .remote(let queue):
                do {
                    try await printEvents(queue.events(since: progress.last), of: queue, until: nil, &progress)
                } catch let error as QueueError where error.isLossOfOwner {
                    // If the owner exited before it sent any event, try again; without --follow, only once. The next owner, or this process, then
                    // reads the recorded events.
                    if progress.last == lastBefore, follow || !hasLostOwner {
                        if hasLostOwner { try await Task.sleep(for: Self.retryDelay) }
                        hasLostOwner = true
                        continue
                    }
                }
            }
            await printTail(&progress)
            guard follow, CommandContext.current.output.failure == nil else { return }
            hasLostOwner = false
            // If this process has printed events, it checks again immediately, because other processes may have added events while it printed.
            if progress.last == lastBefore { try await FolderChange(in: try common.folder()).wait() }
        }
    }

    /// Prints the events of a queue that no single process owns, such as a fleet's queue in a PostgreSQL database. With `--follow`, continues
    /// after the queue was unreachable.
    private func watch(_ queue: any ControllableQueue, _ progress: inout Progress) async throws {
        while true {
            do {
                return try await printEvents(queue.eventStream(since: progress.last), of: queue, until: nil, &progress)
            } catch let error as QueueError where follow && error.code == .storageUnavailable {
                await common.note(error.message)
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    private func printLog(of queue: TransferQueue, _ progress: inout Progress) async throws {
        let last = queue.revision
        guard progress.last != last else { return }
        try await printEvents(queue.events(since: progress.last), of: queue, until: last, &progress)
    }

    /// The first recorded events after a revision, at most ``batchSize``.
    private static func recorded(in queue: TransferQueue, after revision: UInt64) async throws -> [QueueEvent] {
        let last = queue.revision
        guard revision != last else { return [] }
        var events: [QueueEvent] = []
        for await event in queue.events(since: revision) {
            events.append(event)
            if event.revision >= last || events.count >= batchSize { break }
        }
        return events
    }

    /// Prints events or passes them to the hook, and updates the progress.
    ///
    /// - Parameter last: The revision after which to return; nil to continue until the events end.
    private func printEvents<Events: AsyncSequence>(
        _ events: Events, of queue: any ControllableQueue, until last: UInt64?, _ progress: inout Progress
    ) async throws where Events.Element == QueueEvent {
        for try await event in events {
            try await handle(event, queue, &progress)
            if let tail = progress.tail, progress.last >= tail.revision { await printTail(&progress) }
            // No further output is possible.
            if CommandContext.current.output.failure != nil { return }
            if let last, event.revision >= last { return }
        }
    }

    /// Prints an event or passes it to the hook.
    ///
    /// - Parameter queue: The queue, for the names of sessions; nil if the queue is closed, which happens only with a hook.
    private func handle(_ event: QueueEvent, _ queue: (any ControllableQueue)?, _ progress: inout Progress) async throws {
        let lastBefore = progress.last
        if case .gap(let from, _) = event.kind, from <= progress.last {
            // The last known revision is higher than that of the last recorded event, for example because the storage folder was restored from a
            // backup. Continue after the last recorded event.
            progress.last = from - 1
        } else {
            progress.last = max(progress.last, event.revision)
        }
        let index = common.json || progress.hook != nil ? progress.indices.index(at: event) : nil
        let isWanted = self.event?.names.contains(event.kind.name) ?? true
        if let hook = progress.hook {
            if case .gap(let from, let to) = event.kind {
                await common.note("The events from \(from) to \(to) are no longer recorded, so the hook does not get them.")
            }
            guard isWanted, !event.isProgress else {
                if progress.last != lastBefore { try await hook.skip(upTo: progress.last) }
                return
            }
            return try await hook.handle(event, index: index, upTo: progress.last)
        }
        guard isWanted else { return }
        if common.json {
            await write(JSONValue(event, index: index).text, &progress)
        } else if !event.isProgress {
            if let id = event.session, progress.names[id] == nil { progress.names[id] = (try? await queue?.status(of: id).name) ?? "" }
            var facts = EventFacts()
            if let queue { facts = await EventFacts(of: event, in: queue, isCurrent: event.time >= progress.startedAt) }
            if let line = line(event, name: event.session.flatMap { progress.names[$0] }, facts, &progress.lines) {
                await write(line, &progress)
            }
        }
    }

    /// Prints a line, or keeps it for ``printTail(_:)``.
    private func write(_ line: String, _ progress: inout Progress) async {
        guard progress.tail != nil else { return await CommandContext.current.output.write(line + "\n") }
        progress.tail?.lines.append(line)
    }

    /// Prints the last lines of the recorded events. From then on, lines are printed immediately.
    private func printTail(_ progress: inout Progress) async {
        guard let lines = progress.tail?.lines.suffix(Int(clamping: tail ?? 0)) else { return }
        progress.tail = nil
        for line in lines { await CommandContext.current.output.write(line + "\n") }
    }

    /// A line for an event; nil for the steps of a run, except with `--verbose`.
    private func line(_ event: QueueEvent, name: String?, _ facts: EventFacts, _ lines: inout EventLines) -> String? {
        let label = event.session.map { "\(SessionDescription.shortID($0)) \(name ?? "")" }
        let text = lines.line(of: event.kind, name: label, facts: facts) ?? EventDescription.changeLine(of: event.kind, name: label)
        guard let text = text ?? (common.verbosity > 0 ? EventDescription.plainLine(of: event.kind, name: label) : nil) else { return nil }
        let start = Figures.date(event.time) + "  "
        guard let columns = CommandContext.current.output.columns else { return start + text }
        // On a terminal, continuation lines are aligned with the text of the first line, if there is enough room.
        let indent = start.count + BarLayout.wordLength
        let wrapped = columns < indent ? start + text : (start + text).wrapped(to: columns, indent: columns < 2 * indent ? 2 : indent)
        return start + BarLayout(hasColor: Terminal.hasColor).colored(String(wrapped.dropFirst(start.count)))
    }
}
