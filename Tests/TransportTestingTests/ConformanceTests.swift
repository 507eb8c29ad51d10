import Foundation
import Testing
import TransferCore
import TransportTesting

@Suite struct ConformanceTests {
    @Test(arguments: TransportPromise.allCases)
    func `the transport into memory keeps`(promise: TransportPromise) async throws {
        try await promise.verify(MemoryFixture())
    }

    /// The suite is worth something only if transports that break a promise fail it.
    @Test(arguments: Defect.allCases)
    func `the suite catches a transport that`(defect: Defect) async throws {
        for promise in defect.brokenPromises {
            let fixture = try MemoryFixture { BrokenTransport(memory: $0, defect: defect) }
            let violation = await #expect(throws: TransportPromise.Violation.self, "\(promise)") {
                // Only the transport that never returns makes use of the deadline.
                try await promise.verify(fixture, deadline: defect == .ignoresCancellation ? .milliseconds(300) : .seconds(60))
            }
            #expect(violation?.promise == promise)
        }
    }

    @Test func `each promise is broken by some defect`() {
        let broken = Set(Defect.allCases.flatMap(\.brokenPromises))
        #expect(broken == Set(TransportPromise.allCases))
    }

    @Test func `a violation reads as a sentence and tells no secret`() async throws {
        let fixture = try MemoryFixture { BrokenTransport(memory: $0, defect: .tellsSecrets) }
        let violation = await #expect(throws: TransportPromise.Violation.self) { try await TransportPromise.secretsAreKept.verify(fixture) }
        #expect(violation?.description == "No secret is in an error, a receipt or a checkpoint — but: The error holds a secret.")
    }
}
