import Foundation
import Testing
import TransferCore
import TransportTesting

@Suite struct ConformanceTests {
    @Test(arguments: TransportPromise.allCases)
    func `the transport into memory keeps`(promise: TransportPromise) async throws {
        try await promise.verify(MemoryFixture())
    }

    /// The suite is useful only if transports that break a promise fail it.
    @Test(arguments: Defect.allCases)
    func `the suite catches a transport that`(defect: Defect) async throws {
        for promise in defect.brokenPromises {
            let fixture = try MemoryFixture { BrokenTransport(memory: $0, defect: defect) }
            let violation = await #expect(throws: PromiseViolation.self, "\(promise)") {
                // Only the transport that never returns needs the deadline.
                try await promise.verify(fixture, deadline: defect == .ignoresCancellation ? .milliseconds(300) : .seconds(60))
            }
            #expect(violation?.promise == promise.rawValue)
        }
    }

    @Test(arguments: [TransportPromise.resumesAfterCut, .resumesAfterCancellation])
    func `a transport may declare that it restarts`(promise: TransportPromise) async throws {
        try await promise.verify(MemoryFixture(resumption: .fromStart) { ForgetfulTransport(memory: $0) })
        let unsaid = try MemoryFixture { ForgetfulTransport(memory: $0) }
        await #expect(throws: PromiseViolation.self) { try await promise.verify(unsaid) }
        let untrue = try MemoryFixture(resumption: .fromStart)
        await #expect(throws: PromiseViolation.self) { try await promise.verify(untrue) }
        let unclean = try MemoryFixture(resumption: .fromStart, takesAllForComplete: true) { ForgetfulTransport(memory: $0) }
        let violation = await #expect(throws: PromiseViolation.self) { try await promise.verify(unclean) }
        #expect(violation?.observation.hasSuffix("the other end considers the incomplete file complete.") == true)
    }

    @Test func `each promise is broken by some defect`() {
        let broken = Set(Defect.allCases.flatMap(\.brokenPromises))
        #expect(broken == Set(TransportPromise.allCases))
    }

    @Test(arguments: DownloadPromise.allCases)
    func `the transport from memory keeps`(promise: DownloadPromise) async throws {
        try await promise.verify(MemoryFixture())
    }

    @Test(arguments: DownloadDefect.allCases)
    func `the suite catches a download that`(defect: DownloadDefect) async throws {
        for promise in defect.brokenPromises {
            let fixture = try MemoryFixture { BrokenDownloads(memory: $0, defect: defect) }
            let violation = await #expect(throws: PromiseViolation.self, "\(promise)") {
                try await promise.verify(fixture, deadline: defect == .ignoresCancellation ? .milliseconds(300) : .seconds(60))
            }
            #expect(violation?.promise == promise.rawValue)
        }
    }

    @Test func `each promise of downloads is broken by some defect`() {
        #expect(Set(DownloadDefect.allCases.flatMap(\.brokenPromises)) == Set(DownloadPromise.allCases))
    }

    @Test(arguments: ListingPromise.allCases)
    func `the transport that lists memory keeps`(promise: ListingPromise) async throws {
        try await promise.verify(MemoryFixture())
    }

    @Test(arguments: ListingDefect.allCases)
    func `the suite catches a listing that`(defect: ListingDefect) async throws {
        for promise in defect.brokenPromises {
            let fixture = try MemoryFixture { BrokenListings(memory: $0, defect: defect) }
            let violation = await #expect(throws: PromiseViolation.self, "\(promise)") {
                try await promise.verify(fixture, deadline: defect == .ignoresCancellation ? .milliseconds(300) : .seconds(60))
            }
            #expect(violation?.promise == promise.rawValue)
        }
    }

    @Test func `each promise of listings is broken by some defect`() {
        #expect(Set(ListingDefect.allCases.flatMap(\.brokenPromises)) == Set(ListingPromise.allCases))
    }

    @Test func `a transport that lists nothing keeps no promise of listings`() async throws {
        let fixture = try MemoryFixture { BrokenDownloads(memory: $0, defect: .goesBack) }
        let violation = await #expect(throws: PromiseViolation.self) { try await ListingPromise.entriesAreWhole.verify(fixture) }
        #expect(violation?.observation == "The transport does not conform to FolderListing.")
    }

    @Test(arguments: StreamPromise.allCases)
    func `the transport of streams into memory keeps`(promise: StreamPromise) async throws {
        try await promise.verify(MemoryFixture())
    }

    @Test(arguments: StreamDefect.allCases)
    func `the suite catches a stream that`(defect: StreamDefect) async throws {
        for promise in defect.brokenPromises {
            let fixture = try MemoryFixture { BrokenStreams(memory: $0, defect: defect) }
            let violation = await #expect(throws: PromiseViolation.self, "\(promise)") {
                try await promise.verify(fixture, deadline: defect.hangs ? .milliseconds(300) : .seconds(60))
            }
            #expect(violation?.promise == promise.rawValue)
        }
    }

    @Test func `each promise of streams is broken by some defect`() {
        #expect(Set(StreamDefect.allCases.flatMap(\.brokenPromises)) == Set(StreamPromise.allCases))
    }

    @Test func `a violation is a sentence without secrets`() async throws {
        let fixture = try MemoryFixture { BrokenTransport(memory: $0, defect: .tellsSecrets) }
        let violation = await #expect(throws: PromiseViolation.self) { try await TransportPromise.secretsAreKept.verify(fixture) }
        #expect(violation?.description == "Errors, receipts and checkpoints contain no secret. Observed: The error contains a secret.")
    }
}
