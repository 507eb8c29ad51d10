import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit

@Suite struct SessionRowsTests {
    /// Sessions with common property values, and one session whose properties have unusual values.
    private static func sessions() async throws -> [SessionStatus] {
        var sessions: [SessionStatus] = []
        try await ControlFixture.with { fixture in
            let plain = try await fixture.remote.status(of: fixture.remote.enqueue(fixture.upload("a")))
            var odd = plain
            odd.index = -1
            odd.name = "Ünïcode \u{0}\n🎬"
            odd.state = .running
            odd.phase = .transferring
            odd.why = .after(SessionID(), .failed)
            (odd.endpoint, odd.transport) = ("sftp://host/", "sftp")
            odd.tags = ["a", ""]
            odd.context = Data([0, 255, 10])
            odd.attempts = .max
            odd.error = TransferError(.noSpace, .internalFailure, "No space.", cause: "cause")
            odd.failedItem = FilePath(bytes: [0x2F, 0xFF, 0x61])
            (odd.startedAt, odd.endedAt, odd.expectedEnd) = (.distantPast, .distantFuture, Date(timeIntervalSince1970: 0.1))
            (odd.notBefore, odd.dependency) = (Date(timeIntervalSince1970: 0.2), .afterAny(SessionID()))
            (odd.rateLimit, odd.deadline) = (7, .milliseconds(1))
            odd.statistics = SessionStatistics(
                files: 3, filesDone: 2, filesFailed: 1, bytesTotal: .max, bytesDone: .min, bytesSent: -1, filesUnsized: 4, rate: 0.1,
                averageRate: .infinity, secondsElapsed: .pi, secondsRemaining: .leastNonzeroMagnitude)
            var next = plain
            next.why = .order(after: plain.id)
            sessions = [plain, odd, next, plain]
        }
        return sessions
    }

    private static func copy(_ rows: SessionRows) throws -> SessionRows {
        try JSONDecoder().decode(SessionRows.self, from: JSONEncoder().encode(rows))
    }

    @Test func keepsAllProperties() async throws {
        let sessions = try await Self.sessions()
        #expect(try Self.copy(SessionRows(sessions)).sessions == sessions)
        #expect(try Self.copy(SessionRows(sessions[1..<3])).sessions == sessions[1..<3].map(\.self))
        #expect(try Self.copy(SessionRows([])).sessions.isEmpty)
    }

    @Test func damagedBytesNeverEndProcess() async throws {
        let encoded = try await JSONEncoder().encode(SessionRows(Self.sessions()))
        var object = try #require(JSONSerialization.jsonObject(with: encoded) as? [String: Any])
        let rows = try #require((object["rows"] as? String).flatMap { Data(base64Encoded: $0) })
        func damaged(_ change: (inout Data) -> Void) throws -> SessionRows {
            var bytes = rows
            change(&bytes)
            object["rows"] = bytes.base64EncodedString()
            return try JSONDecoder().decode(SessionRows.self, from: JSONSerialization.data(withJSONObject: object))
        }
        for count in stride(from: 0, to: rows.count, by: 3) {
            let cut = try damaged { $0 = $0.prefix(count) }
            #expect(throws: QueueError.self) { try cut.sessions }
        }
        for position in rows.indices {
            for value: UInt8 in [0x7F, 0xFF] { _ = try? damaged { $0[position] = value }.sessions }
        }
        object["count"] = Int.max
        #expect(throws: QueueError.self) { try damaged { _ in }.sessions }
    }
}
