import Foundation
import Testing

/// A running `transferq run`, whose events the test reads in order.
struct RunningQueue: Sendable {
    let command: RunningCommand

    init(_ program: TransferQ, _ options: String...) throws {
        command = try program.start(["run", "--json"] + options)
    }

    /// Reads events up to the first match, and returns this event.
    @discardableResult
    func event(_ name: String, of id: String? = nil, where matches: ([String: Any]) -> Bool = { _ in true }) async throws -> [String: Any] {
        for await line in command.lines {
            let event = try CommandResult.object(line)
            if event["event"] as? String == name, id == nil || event["id"] as? String == id, matches(event) { return event }
        }
        let result = await command.result()
        return try #require(nil, "no event \(name) of \(id ?? "any session"): \(result.testDescription)")
    }

    /// Reads events until the session has sent bytes.
    func progress(of id: String) async throws {
        try await event("progress", of: id) { ($0["bytesSent"] as? Int ?? 0) > 0 }
    }
}
