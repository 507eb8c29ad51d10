import Foundation
import Testing
import TransferCore
import TransportTesting

@Suite struct ConformanceTests {
    @Test(arguments: TransportPromise.allCases)
    func `the memory transport keeps each upload promise`(promise: TransportPromise) async throws {
        try await promise.verify(MemoryFixture())
    }

    /// The suite is useful only if it rejects transports that break a promise.
    @Test(arguments: UploadDefect.allCases)
    func `the suite detects each upload defect`(defect: UploadDefect) async throws {
        for promise in defect.brokenPromises {
            let fixture = try MemoryFixture { BrokenTransport(memory: $0, defect: defect) }
            let violation = await #expect(throws: PromiseViolation.self, "\(promise)") {
                // An attempt that ignores cancellation never ends, so a short deadline saves time.
                try await promise.verify(fixture, deadline: defect == .ignoresCancellation ? .milliseconds(300) : .seconds(60))
            }
            #expect(violation?.promise == promise.rawValue)
        }
    }

    @Test(arguments: [TransportPromise.resumesAfterLostConnection, .resumesAfterCancellation])
    func `the suite accepts a transport that declares that it restarts uploads`(promise: TransportPromise) async throws {
        try await promise.verify(MemoryFixture(resumption: .fromStart) { ForgetfulTransport(memory: $0) })
        let undeclared = try MemoryFixture { ForgetfulTransport(memory: $0) }
        await #expect(throws: PromiseViolation.self) { try await promise.verify(undeclared) }
        let misdeclared = try MemoryFixture(resumption: .fromStart)
        await #expect(throws: PromiseViolation.self) { try await promise.verify(misdeclared) }
        let inconsistent = try MemoryFixture(resumption: .fromStart, considersAllFilesComplete: true) { ForgetfulTransport(memory: $0) }
        let violation = await #expect(throws: PromiseViolation.self) { try await promise.verify(inconsistent) }
        #expect(violation?.observation.hasSuffix("the other end considers the incomplete file complete.") == true)
    }

    @Test func `each upload promise is broken by some defect`() {
        let broken = Set(UploadDefect.allCases.flatMap(\.brokenPromises))
        #expect(broken == Set(TransportPromise.allCases))
    }

    @Test(arguments: DownloadPromise.allCases)
    func `the memory transport keeps each download promise`(promise: DownloadPromise) async throws {
        try await promise.verify(MemoryFixture())
    }

    @Test(arguments: DownloadDefect.allCases)
    func `the suite detects each download defect`(defect: DownloadDefect) async throws {
        for promise in defect.brokenPromises {
            let fixture = try MemoryFixture { BrokenDownloads(memory: $0, defect: defect) }
            let violation = await #expect(throws: PromiseViolation.self, "\(promise)") {
                try await promise.verify(fixture, deadline: defect == .ignoresCancellation ? .milliseconds(300) : .seconds(60))
            }
            #expect(violation?.promise == promise.rawValue)
        }
    }

    @Test func `each download promise is broken by some defect`() {
        #expect(Set(DownloadDefect.allCases.flatMap(\.brokenPromises)) == Set(DownloadPromise.allCases))
    }

    @Test(arguments: ListingPromise.allCases)
    func `the memory transport keeps each listing promise`(promise: ListingPromise) async throws {
        try await promise.verify(MemoryFixture())
    }

    @Test(arguments: ListingDefect.allCases)
    func `the suite detects each listing defect`(defect: ListingDefect) async throws {
        for promise in defect.brokenPromises {
            let fixture = try MemoryFixture { BrokenListings(memory: $0, defect: defect) }
            let violation = await #expect(throws: PromiseViolation.self, "\(promise)") {
                try await promise.verify(fixture, deadline: defect == .ignoresCancellation ? .milliseconds(300) : .seconds(60))
            }
            #expect(violation?.promise == promise.rawValue)
        }
    }

    @Test func `each listing promise is broken by some defect`() {
        #expect(Set(ListingDefect.allCases.flatMap(\.brokenPromises)) == Set(ListingPromise.allCases))
    }

    @Test func `the suite rejects a transport without listings`() async throws {
        let fixture = try MemoryFixture { BrokenDownloads(memory: $0, defect: .decreasesProgress) }
        let violation = await #expect(throws: PromiseViolation.self) { try await ListingPromise.entriesAreComplete.verify(fixture) }
        #expect(violation?.observation == "The transport does not conform to FolderListing.")
    }

    @Test(arguments: StreamPromise.allCases)
    func `the memory transport keeps each stream promise`(promise: StreamPromise) async throws {
        try await promise.verify(MemoryFixture())
    }

    @Test(arguments: StreamDefect.allCases)
    func `the suite detects each stream defect`(defect: StreamDefect) async throws {
        for promise in defect.brokenPromises {
            let fixture = try MemoryFixture { BrokenStreams(memory: $0, defect: defect) }
            let violation = await #expect(throws: PromiseViolation.self, "\(promise)") {
                try await promise.verify(fixture, deadline: defect.hangs ? .milliseconds(300) : .seconds(60))
            }
            #expect(violation?.promise == promise.rawValue)
        }
    }

    @Test func `each stream promise is broken by some defect`() {
        #expect(Set(StreamDefect.allCases.flatMap(\.brokenPromises)) == Set(StreamPromise.allCases))
    }

    @Test func `the description of a violation contains no secret`() async throws {
        let fixture = try MemoryFixture { BrokenTransport(memory: $0, defect: .leaksSecrets) }
        let violation = await #expect(throws: PromiseViolation.self) { try await TransportPromise.secretsDoNotLeak.verify(fixture) }
        #expect(violation?.description == "Errors, receipts and checkpoints contain no secret. Observed: The error contains a secret.")
    }
}
