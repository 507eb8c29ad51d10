import ArgumentParser
import Foundation
import TransferKit

struct WatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch", abstract: "Prints what happened, from the queue's change log.",
        discussion: """
            Ends with the last event: while no process owns the queue, nothing more happens. What happens in a run: \
            transferq run --progress json

            Example: transferq watch --json --since 120
            """)

    @OptionGroup var common: CommonOptions

    @Option(help: ArgumentHelp("Only what came after the event with this number.", valueName: "revision"))
    var since: UInt64 = 0

    func run() async throws {
        do {
            try await common.withOwnedQueue { try await printLog(of: $0) }
        } catch let error as QueueError where error.code == .storageInUse {
            throw CommandFailure(.storage, "\(error.message) Watching the queue of another process isn't possible yet.")
        }
    }

    private func printLog(of queue: TransferQueue) async throws {
        let last = queue.revision
        guard since < last else { return }
        // Only from the very beginning on is it known where sessions were.
        var indices = SessionIndices(since == 0 ? [] : nil)
        let (output, isJSON) = (CommandContext.current.output, common.json)
        var names: [SessionID: String] = [:]
        for await event in queue.events(since: since) {
            if isJSON {
                let index = indices.index(at: event)
                await output.write(JSONValue(event, index: index))
            } else {
                if let id = event.session, names[id] == nil { names[id] = (try? await queue.session(id).name) ?? "" }
                await output.write(Self.line(event, name: event.session.flatMap { names[$0] }) + "\n")
            }
            if event.revision >= last { return }
        }
    }

    private static func line(_ event: QueueEvent, name: String?) -> String {
        let label = event.session.map { "\(SessionDescription.shortID($0)) \(name ?? "")" }
        let text = EventDescription.line(of: event.kind, name: label) ?? EventDescription.plainLine(of: event.kind, name: label)
        return "\(event.time.formatted(.iso8601))  \(text)"
    }
}
