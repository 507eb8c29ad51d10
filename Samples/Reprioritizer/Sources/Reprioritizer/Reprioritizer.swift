import Foundation
import TransferKit
import TransportTUS
import UploadList

/// Changes the order of uploads at runtime, with commands from standard input. A list view would call the same methods of ``UploadList``.
///
///     Reprioritizer SERVER FILE...
@main
@MainActor
struct Reprioritizer {
    static func main() async throws {
        let arguments = CommandLine.arguments.dropFirst()
        guard let server = arguments.first else { return print("Usage: Reprioritizer SERVER FILE...") }

        // The queue of this sample need not survive the process.
        let queue = try await TransferQueue(storage: .inMemory, transports: [TUSTransport()])
        try await queue.save(Account("studio", endpoints: [.tus(server)]))
        let list = UploadList(queue)
        var shown = ""
        list.onChange = {
            let text = list.rows.map { "\($0.name) \($0.state.rawValue)" }.joined(separator: ", ")
            // Progress is a change, too, but this program shows only the order and the states.
            if text != shown { print(text) }
            shown = text
        }
        await list.follow()
        print("Commands: start, now ROW, move ROW ROW, pause ROW, cancel ROW, undo. The first row is 0.")
        try await queue.enqueue(arguments.dropFirst().map { try .upload([$0], to: "studio") })

        for await line in lines() {
            let words = line.split(separator: " ")
            let numbers = words.compactMap { Int($0) }
            guard numbers.allSatisfy(list.rows.indices.contains) else {
                print("There is no such row.")
                continue
            }
            let rows = numbers.map { list.rows[$0].id }
            do {
                switch (words.first, rows.count) {
                case ("start", 0): try await queue.start()
                case ("now", 1): try await list.runNow(rows[0])
                case ("move", 2): try await list.move(rows[0], to: numbers[1])
                case ("pause", 1): try await list.pause(rows[0])
                case ("cancel", 1): try await list.cancel(rows[0])
                case ("undo", 0): try await list.undo()
                default: print("This is not a command: \(line)")
                }
            } catch let error as QueueError {
                // For example, the session completed before the command.
                print(error.message)
            }
        }
        await queue.shutdown()
    }

    /// The lines of standard input, read on a separate thread, because `readLine()` blocks.
    static func lines() -> AsyncStream<String> {
        AsyncStream { continuation in
            Thread.detachNewThread {
                while let line = readLine() { continuation.yield(line) }
                continuation.finish()
            }
        }
    }
}
