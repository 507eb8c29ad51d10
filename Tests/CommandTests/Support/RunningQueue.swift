import Foundation
import Testing

/// A `transferq run` of a test, whose events are read one after the other.
struct RunningQueue: Sendable {
    let command: RunningCommand

    init(_ program: TransferQ, _ options: String...) throws {
        command = try program.start(["run", "--json"] + options)
    }

    /// Reads on until an event that fits, and returns it.
    @discardableResult
    func event(_ name: String, of id: String? = nil, where fits: ([String: Any]) -> Bool = { _ in true }) async throws -> [String: Any] {
        for await line in command.lines {
            let event = try CommandResult.object(line)
            if event["event"] as? String == name, id == nil || event["id"] as? String == id, fits(event) { return event }
        }
        let result = await command.result()
        return try #require(nil, "no \(name) of \(id ?? "anything"): \(result.testDescription)")
    }

    /// Reads on until bytes of a session move.
    func progress(of id: String) async throws {
        try await event("progress", of: id) { ($0["bytesSent"] as? Int ?? 0) > 0 }
    }
}
