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
            the next owner instead. With --verbose, also prints the steps of each run; --json prints all events.

            Example: transferq watch --json --since 120
            Example: transferq watch --tail 20
            Example: transferq watch --follow
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

    /// The delay before the next attempt after an owner exited without sending events.
    private static let pause = Duration.milliseconds(50)

    /// The state of the command, kept when the owner of the queue changes.
    private struct Progress {
        var indices: SessionIndices
        var names: [SessionID: String] = [:]
        var lines = EventLines()
        /// The revision of the last printed event.
        var last: UInt64
    }

    func validate() throws {
        if since != nil, tail != nil { throw ValidationError("--since and --tail can't be used together.") }
    }

    /// The revision after which to print events.
    private func start() async throws -> UInt64 {
        if case .revision(let revision) = since { return revision }
        guard since != nil || tail != nil else { return 0 }
        let revision = try await common.withQueue { try await $0.status().revision }
        return revision - min(revision, tail ?? 0)
    }

    func run() async throws {
        let since = try await start()
        // Without the beginning of the log, the indices of sessions are unknown.
        var progress = Progress(indices: SessionIndices(since == 0 ? [] : nil), last: since)
        var hasLostOwner = false
        while true {
            let lastBefore = progress.last
            switch try await common.reachedQueue() {
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
                    // If the owner exited before it sent any event, try again. The next owner, or this process, then reads the log.
                    if progress.last == lastBefore, follow || !hasLostOwner {
                        if hasLostOwner { try await Task.sleep(for: Self.pause) }
                        hasLostOwner = true
                        continue
                    }
                }
            }
            guard follow, CommandContext.current.output.failure == nil else { return }
            hasLostOwner = false
            // If this process has printed events, it checks again immediately, because other processes may have added events during the printing.
            if progress.last == lastBefore { try await FolderChange(in: try common.folder()).wait() }
        }
    }

    private func printLog(of queue: TransferQueue, _ progress: inout Progress) async throws {
        let last = queue.revision
        guard progress.last != last else { return }
        try await printEvents(queue.events(since: progress.last), of: queue, until: last, &progress)
    }

    /// Prints events, and records them in the progress.
    ///
    /// - Parameter last: The revision after which to return; nil to print until the events end.
    private func printEvents<Events: AsyncSequence>(
        _ events: Events, of queue: any ControllableQueue, until last: UInt64?, _ progress: inout Progress
    ) async throws where Events.Element == QueueEvent {
        let (output, isJSON) = (CommandContext.current.output, common.json)
        for try await event in events {
            if case .gap(let from, _) = event.kind, from <= progress.last {
                // The last known revision is beyond the end of the log, for example because the storage folder was restored from a backup.
                // Continue from the end of the log.
                progress.last = from - 1
            } else {
                progress.last = max(progress.last, event.revision)
            }
            if isJSON {
                let index = progress.indices.index(at: event)
                await output.write(JSONValue(event, index: index))
            } else if !event.isProgress {
                if let id = event.session, progress.names[id] == nil { progress.names[id] = (try? await queue.status(of: id).name) ?? "" }
                if let line = line(event, name: event.session.flatMap { progress.names[$0] }, &progress.lines) {
                    await output.write(line + "\n")
                }
            }
            // No further output is possible.
            if output.failure != nil { return }
            if let last, event.revision >= last { return }
        }
    }

    /// A line for an event; nil for the steps of a run, except with `--verbose`.
    private func line(_ event: QueueEvent, name: String?, _ lines: inout EventLines) -> String? {
        let label = event.session.map { "\(SessionDescription.shortID($0)) \(name ?? "")" }
        let text = lines.line(of: event.kind, name: label) ?? EventDescription.changeLine(of: event.kind, name: label)
        guard let text = text ?? (common.verbosity > 0 ? EventDescription.plainLine(of: event.kind, name: label) : nil) else { return nil }
        let start = Figures.date(event.time) + "  "
        guard let columns = CommandContext.current.output.columns else { return start + text }
        // On a terminal, the text of a further line begins below that of the first line, if there is enough room.
        let indent = start.count + BarLayout.wordLength
        let wrapped = columns < indent ? start + text : (start + text).wrapped(to: columns, indent: columns < 2 * indent ? 2 : indent)
        return start + BarLayout(hasColor: Terminal.hasColor).colored(String(wrapped.dropFirst(start.count)))
    }
}
