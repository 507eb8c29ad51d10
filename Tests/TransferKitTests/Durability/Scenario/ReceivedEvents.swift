import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// A file with the events that a process receives before it is killed. A later process compares the file with the change log.
final class ReceivedEvents: Sendable {
    private let reader: Task<Void, any Error>

    init(in root: FilePath, of queue: TransferQueue) throws {
        let file = try FileDescriptor.open(
            root.appending("events"), .writeOnly, options: [.create, .append], permissions: [.ownerReadWrite])
        let events = queue.events
        reader = Task {
            for await event in events {
                if case .progress = event.kind { continue }
                // Written bytes survive when the process is killed, because the kernel holds them.
                _ = try file.writeAll(Array("\(event.revision) \(Self.name(event))\n".utf8))
            }
        }
    }

    deinit { reader.cancel() }

    /// Checks that the change log contains all received events, and that it has no gaps.
    static func expectInLog(_ root: FilePath, _ queue: TransferQueue, _ comment: Comment) async throws {
        // A process that was killed while it created its database received no event.
        let received = (try? String(contentsOfFile: root.appending("events").string, encoding: .utf8)) ?? ""
        let lines = received.split(separator: "\n")
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
        #expect(missing.isEmpty, "received, but not in the log: \(missing); \(comment)")
    }

    private static func name(_ event: QueueEvent) -> Substring {
        "\(event.kind)".prefix { $0 != "(" }
    }
}
