import Foundation
import Locking
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct AttemptOptionTests {
    private let attempts = Locked<[FileAttempt]>([])

    private var receivedOptions: [AttemptOptions] { attempts.withLock { $0.map(\.options) } }

    private func fixture(_ options: SessionOptions) async throws -> RunFixture {
        let memory = MemoryTransport(chunkSize: 1_000)
        return try await RunFixture(
            ["1": 3_000, "2": 10], options: options, memory: memory,
            transport: AttemptRecordingTransport(memory: memory, attempts: attempts))
    }

    @Test func usesDefaultOptions() async throws {
        let fixture = try await fixture(SessionOptions())
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(receivedOptions == [AttemptOptions(), AttemptOptions()])
        await fixture.close()
    }

    @Test func laterFilesUseChangedOptions() async throws {
        var options = SessionOptions(
            metadata: ["a": "b"], filesInFlight: 1, verification: Verification.none, creation: .separate,
            headers: ["X-Tier": "cold"], chunkSize: 5, segmentsPerFile: 3, settings: ["upload": "form"])
        let fixture = try await fixture(options)
        let gate = fixture.memory.gate("1", atByte: 1_000)
        let run = try await fixture.start()
        try await gate.reached()
        options.verification = .checksum
        try #require(fixture.liveRun.withLock { $0 }).update(options)
        gate.open()
        #expect(try await run.value?.hasSucceeded == true)
        #expect(
            receivedOptions == [
                AttemptOptions(
                    metadata: ["a": "b"], headers: ["X-Tier": "cold"], verification: Verification.none, creation: .separate,
                    chunkSize: 5, segmentsPerFile: 3, settings: ["upload": "form"]),
                AttemptOptions(
                    metadata: ["a": "b"], headers: ["X-Tier": "cold"], verification: .checksum, creation: .separate, chunkSize: 5,
                    segmentsPerFile: 3, settings: ["upload": "form"]),
            ])
        await fixture.close()
    }

    @Test func storesAndChangesOptions() async throws {
        let fixture = try await fixture(SessionOptions(verification: Verification.none, creation: .separate))
        #expect(try await fixture.store.sessions([1]).first?.options.verification == Verification.none)
        try await fixture.store.commit([.updateSession(1, SessionUpdate(verification: .checksum))])
        let options = try #require(try await fixture.store.sessions([1]).first?.options)
        #expect(options.verification == .checksum && options.creation == .separate)
        try await fixture.store.commit([.updateSession(1, SessionUpdate(rateLimit: .bytesPerSecond(5)))])
        let limited = try #require(try await fixture.store.sessions([1]).first?.options)
        #expect(limited.verification == .checksum && limited.rateLimit == 5)
        try await fixture.store.commit([.updateSession(1, SessionUpdate(verification: .size))])
        #expect(try await fixture.store.sessions([1]).first?.options.rateLimit == 5, "an update without a rate limit keeps the limit")
        try await fixture.store.commit([.updateSession(1, SessionUpdate(rateLimit: .unlimited))])
        let unlimited = try #require(try await fixture.store.sessions([1]).first?.options)
        #expect(unlimited.rateLimit == nil && unlimited.verification == .size)
        await fixture.close()
    }

    @Test func usesDefaultsForOptionsOfOlderVersion() throws {
        let options = try JSONDecoder().decode(SessionOptions.self, from: Data(#"{"metadata":{"a":"b"}}"#.utf8))
        #expect(options == SessionOptions(metadata: ["a": "b"]))
    }
}
