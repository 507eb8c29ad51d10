import ArgumentParser
import Foundation
import TransferControl
import TransferKit

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Prints what happens: first what did already, from the change log, then what comes.",
        discussion: """
            Ends when the process that owns the queue lets it go, or with the last event if none owns it; with --follow, it waits for what \
            others do then.

            Example: transferq watch --json --since 120
            Example: transferq watch --follow
            """)

    @OptionGroup var common: CommonOptions

    @Option(parsing: .unconditional, help: ArgumentHelp("Only what came after the event with this number.", valueName: "revision"))
    var since: UInt64 = 0

    @Flag(help: "Go on until it is interrupted, whoever owns the queue.")
    var follow = false

    /// Between two owners of which neither told anything.
    private static let pause = Duration.milliseconds(50)

    /// What is carried on from one owner to the next.
    private struct Story {
        var indices: SessionIndices
        var names: [SessionID: String] = [:]
        /// The number of the last event that was printed.
        var last: UInt64
    }

    func run() async throws {
        // Only from the very beginning on is it known where sessions were.
        var story = Story(indices: SessionIndices(since == 0 ? [] : nil), last: since)
        var hasLostOwner = false
        while true {
            let begun = story.last
            switch try await common.reachedQueue() {
            case .owned(let queue):
                story = try await CommonOptions.closing(queue) { [story] queue in
                    var story = story
                    try await printLog(of: queue, &story)
                    return story
                }
            case .remote(let queue):
                do {
                    try await printEvents(queue.events(since: story.last), of: queue, until: nil, &story)
                } catch let error as QueueError where error.isEndOfOwner {
                    // One that was killed has told its last; of one that ended before it told anything the log is read, by whoever comes next.
                    if story.last == begun, follow || !hasLostOwner {
                        if hasLostOwner { try await Task.sleep(for: Self.pause) }
                        hasLostOwner = true
                        continue
                    }
                }
            }
            guard follow, CommandContext.current.output.failure == nil else { return }
            hasLostOwner = false
            // Others may have written while this one read.
            if story.last == begun { try await StoreChange(in: try common.folder()).wait() }
        }
    }

    private func printLog(of queue: TransferQueue, _ story: inout Story) async throws {
        let last = queue.revision
        guard story.last != last else { return }
        try await printEvents(queue.events(since: story.last), of: queue, until: last, &story)
    }

    /// - Parameter last: The number of the event to end with; nil to go on until the events end.
    private func printEvents<Events: AsyncSequence>(
        _ events: Events, of queue: any ControllableQueue, until last: UInt64?, _ story: inout Story
    ) async throws where Events.Element == QueueEvent {
        let (output, isJSON) = (CommandContext.current.output, common.json)
        for try await event in events {
            if case .gap(let from, _) = event.kind, from <= story.last {
                // The log ends before the event that was named: what comes is counted on from its end.
                story.last = from - 1
            } else {
                story.last = max(story.last, event.revision)
            }
            if isJSON {
                let index = story.indices.index(at: event)
                await output.write(JSONValue(event, index: index))
            } else if !event.isProgress {
                if let id = event.session, story.names[id] == nil { story.names[id] = (try? await queue.session(id).name) ?? "" }
                await output.write(Self.line(event, name: event.session.flatMap { story.names[$0] }) + "\n")
            }
            // Nobody reads on, so that there is nothing to go on for.
            if output.failure != nil { return }
            if let last, event.revision >= last { return }
        }
    }

    private static func line(_ event: QueueEvent, name: String?) -> String {
        let label = event.session.map { "\(SessionDescription.shortID($0)) \(name ?? "")" }
        let text = EventDescription.line(of: event.kind, name: label) ?? EventDescription.plainLine(of: event.kind, name: label)
        return "\(event.time.formatted(.iso8601))  \(text)"
    }
}

extension QueueEvent {
    fileprivate var isProgress: Bool {
        if case .progress = kind { true } else { false }
    }
}
