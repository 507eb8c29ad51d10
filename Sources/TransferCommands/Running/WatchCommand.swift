import ArgumentParser
import Foundation
import TransferControl
import TransferKit

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Prints what happens: first what did already, from the change log, then what comes.",
        discussion: """
            Ends when the process that owns the queue lets it go, or with the last event if none owns it: nothing more happens then.

            Example: transferq watch --json --since 120
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Only what came after the event with this number.", valueName: "revision"))
    var since: UInt64 = 0

    func run() async throws {
        switch try await common.reachedQueue() {
        case .owned(let queue): try await CommonOptions.closing(queue) { try await printLog(of: $0) }
        case .remote(let queue):
            do {
                try await printEvents(queue.events(since: since), of: queue, last: nil)
            } catch let error as QueueError where error.isEndOfOwner {
                // It was killed; what follows is told by a new watch.
                return
            }
        }
    }

    private func printLog(of queue: TransferQueue) async throws {
        let last = queue.revision
        guard since < last else { return }
        try await printEvents(queue.events(since: since), of: queue, last: last)
    }

    /// - Parameter last: The number of the event to end with; nil to go on until the events end.
    private func printEvents<Events: AsyncSequence>(_ events: Events, of queue: any ControllableQueue, last: UInt64?) async throws
    where Events.Element == QueueEvent {
        // Only from the very beginning on is it known where sessions were.
        var indices = SessionIndices(since == 0 ? [] : nil)
        let (output, isJSON) = (CommandContext.current.output, common.json)
        var names: [SessionID: String] = [:]
        for try await event in events {
            if isJSON {
                let index = indices.index(at: event)
                await output.write(JSONValue(event, index: index))
            } else if !event.isProgress {
                if let id = event.session, names[id] == nil { names[id] = (try? await queue.session(id).name) ?? "" }
                await output.write(Self.line(event, name: event.session.flatMap { names[$0] }) + "\n")
            }
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
