import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// What a process was told before it was killed, and what the change log says of it afterwards.
final class ToldEvents: Sendable {
    private let reader: Task<Void, any Error>

    /// Writes down each numbered event of a queue as soon as it is told.
    init(in root: FilePath, of queue: TransferQueue) throws {
        let file = try FileDescriptor.open(
            root.appending("told"), .writeOnly, options: [.create, .append], permissions: [.ownerReadWrite])
        let events = queue.events
        reader = Task {
            for await event in events {
                if case .progress = event.kind { continue }
                // What was handed to the kernel outlives the process.
                _ = try file.writeAll(Array("\(event.revision) \(Self.name(event))\n".utf8))
            }
        }
    }

    deinit { reader.cancel() }

    /// Nothing that was told is missing from the log, and nothing is missing between the first event and the last.
    static func expectInLog(_ root: FilePath, _ queue: TransferQueue, _ comment: Comment) async throws {
        // One that was killed while it made its store was told nothing.
        let told = (try? String(contentsOfFile: root.appending("told").string, encoding: .utf8)) ?? ""
        let lines = told.split(separator: "\n")
        let last = queue.revision
        var logged: [String] = []
        if last > 0 {
            for await event in queue.events(since: 0) {
                logged.append("\(event.revision) \(name(event))")
                if event.revision >= last { break }
            }
        }
        #expect(!logged.contains { $0.hasSuffix(" gap") }, comment)
        #expect(logged.count == Int(last), comment)
        let missing = Set(lines.map(String.init)).subtracting(logged)
        #expect(missing.isEmpty, "told, and not in the log: \(missing); \(comment)")
    }

    private static func name(_ event: QueueEvent) -> Substring {
        "\(event.kind)".prefix { $0 != "(" }
    }
}
