import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// What a session asks of its transport gets there.
@Suite struct AttemptOptionTests {
    /// Notes what it is asked, and lets the memory do it.
    private struct NotingTransport: Transport {
        let id = TransportID(rawValue: "memory")
        let memory: MemoryTransport
        let seen: Locked<[AttemptOptions]>

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            seen.withLock { $0.append(attempt.options) }
            return try await memory.perform(attempt, reporting: reporter)
        }

        func shutdown() async {
            await memory.shutdown()
        }
    }

    private let seen = Locked<[AttemptOptions]>([])

    private func fixture(_ options: SessionOptions) async throws -> RunFixture {
        let memory = MemoryTransport(chunkSize: 1_000)
        return try await RunFixture(
            ["1": 3_000, "2": 10], options: options, memory: memory, transport: NotingTransport(memory: memory, seen: seen))
    }

    @Test func withoutAWishTheDefaultsHold() async throws {
        let fixture = try await fixture(SessionOptions())
        #expect(try await fixture.run()?.isFinished == true)
        #expect(seen.withLock { $0 } == [AttemptOptions(), AttemptOptions()])
        await fixture.close()
    }

    @Test func laterFilesSeeAChange() async throws {
        var options = SessionOptions(
            metadata: ["a": "b"], filesInFlight: 1, verification: Verification.none, creation: .separate)
        let fixture = try await fixture(options)
        let gate = fixture.memory.gate("1", atByte: 1_000)
        let run = try await fixture.start()
        try await gate.reached()
        options.verification = .checksum
        try #require(fixture.live.withLock { $0 }).update(options)
        gate.open()
        #expect(try await run.value?.isFinished == true)
        #expect(
            seen.withLock { $0 } == [
                AttemptOptions(metadata: ["a": "b"], verification: Verification.none, creation: .separate),
                AttemptOptions(metadata: ["a": "b"], verification: .checksum, creation: .separate),
            ])
        await fixture.close()
    }

    @Test func theyAreStoredAndChanged() async throws {
        let fixture = try await fixture(SessionOptions(verification: Verification.none, creation: .separate))
        #expect(try await fixture.store.sessions([1]).first?.options.verification == Verification.none)
        try await fixture.store.commit([.updateSession(1, SessionUpdate(verification: .checksum))])
        let options = try #require(try await fixture.store.sessions([1]).first?.options)
        #expect(options.verification == .checksum && options.creation == .separate)
        try await fixture.store.commit([.updateSession(1, SessionUpdate(rateLimit: 5))])
        #expect(try await fixture.store.sessions([1]).first?.options.verification == .checksum)
        await fixture.close()
    }

    @Test func whatAnEarlierVersionDidNotKnowHasItsDefault() throws {
        let options = try JSONDecoder().decode(SessionOptions.self, from: Data(#"{"metadata":{"a":"b"}}"#.utf8))
        #expect(options == SessionOptions(metadata: ["a": "b"]))
    }
}
