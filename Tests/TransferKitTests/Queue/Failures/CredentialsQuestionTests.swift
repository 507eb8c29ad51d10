import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct CredentialsQuestionTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture(memory: MemoryTransport(acceptedSecret: "good"))
    }

    private actor FixedDelegate: TransferQueueDelegate {
        private(set) var count = 0
        private let decision: CredentialsDecision

        init(_ decision: CredentialsDecision) {
            self.decision = decision
        }

        func queue(_ queue: TransferQueue, didReceive event: QueueEvent) {}

        func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) -> CredentialsDecision {
            count += 1
            return decision
        }
    }

    @Test func delaysAttemptsWithRejectedCredentials() async throws {
        let delegate = FixedDelegate(.retry)
        let queue = try await fixture.open(delegate: delegate)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        for (calls, delay) in [(2, Duration.seconds(1)), (3, .seconds(2)), (4, .seconds(4))] {
            await fixture.clock.waitForSleep(of: delay)
            #expect(await delegate.count == calls)
            #expect(fixture.memory.attempts.count == calls)
            #expect(await queue.account("a")?.blockingError != nil)
            fixture.clock.advance(by: delay)
        }
        await queue.shutdown()
    }

    @Test func nextProcessRequestsCredentialsOnce() async throws {
        var delegate = FixedDelegate(.later)
        var queue = try await fixture.open(delegate: delegate)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        await queue.waitUntilIdle()
        try await queue.stopAndWait()
        try await queue.start()
        await queue.shutdown()
        #expect(await delegate.count == 1)

        delegate = FixedDelegate(.later)
        queue = try await fixture.open(delegate: delegate)
        try await queue.start()
        try await queue.stopAndWait()
        try await queue.start()
        await queue.shutdown()
        #expect(await delegate.count == 1)
        #expect(fixture.memory.attempts.count == 1)
    }

    /// A token server that is down must not block the account.
    @Test func errorOfAppKeepsFailureClass() async throws {
        let unavailable = TransferError(.transient, .serverUnavailable, "The token server is down.")
        let provider = ReferencedCredentials { _ in throw unavailable }
        await #expect(throws: unavailable) { try await provider.secret(for: .bearer(.app("studio"))) }
    }

    @Test func appSuppliesSecrets() async throws {
        let credentials = ReferencedCredentials { name in
            guard name == "studio" else { throw CocoaError(.fileNoSuchFile) }
            return Secret("secret")
        }
        #expect(try await credentials.secret(for: .bearer(.app("studio"))).reveal() == "secret")
        for provider in [credentials, ReferencedCredentials()] {
            let error = await #expect(throws: TransferError.self) { try await provider.secret(for: .bearer(.app("other"))) }
            #expect(error?.code == .credentialsUnavailable && error?.message.contains("\"other\"") == true)
        }
        let stored = try JSONEncoder().encode(CredentialReference.password(.app("studio")))
        #expect(try JSONDecoder().decode(CredentialReference.self, from: stored) == .password(.app("studio")))
    }

    @Test func secretInMemoryIsNeverStored() async throws {
        var endpoint = fixture.memory.endpoint(host: "a")
        endpoint.credentials = [.password(.value(Secret("good")))]
        let secret = try #require(endpoint.credentials[0].source.memory)
        let account = Account("a", endpoints: [endpoint])
        let text = String(decoding: try JSONEncoder().encode(account), as: UTF8.self)
        #expect(!text.contains("good") && !"\(account)".contains("good"))
        #expect(try JSONDecoder().decode(Account.self, from: Data(text.utf8)) == account)

        let queue = try await fixture.open()
        try await queue.save(account)
        let first = try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        #expect(try await first.value.state == .completed)
        let store = fixture.folder.path.appending("store")
        let names = try FileManager.default.subpathsOfDirectory(atPath: store.string)
        let files = names.compactMap { FileManager.default.contents(atPath: store.pushing(FilePath($0)).string) }
        #expect(files.contains { $0.range(of: Data(secret.id.uuidString.utf8)) != nil }, "the storage folder contains the secret's ID")
        #expect(!files.contains { $0.range(of: Data("good".utf8)) != nil }, "no file contains the secret")

        // This account has only the ID of a secret, as if an earlier process had saved the account.
        endpoint.credentials = [
            try JSONDecoder().decode(
                CredentialReference.self,
                from: Data(#"{"kind":"password","source":{"memory":{"_0":"\#(UUID().uuidString)"}}}"#.utf8))
        ]
        try await queue.save(Account("a", endpoints: [endpoint]))
        let second = try await queue.enqueue(try fixture.upload("2"))
        await queue.waitUntilIdle()
        let error = try #require(await queue.account("a")?.blockingError)
        #expect(error.code == .credentialsUnavailable && error.message.contains("Save the account again"))
        try await queue.save(account)
        #expect(try await second.value.state == .completed)
        await queue.shutdown()
    }

    @Test func releasesUnusedSecretsInMemory() throws {
        func encoded() throws -> Data { try JSONEncoder().encode([CredentialReference.Source.value(Secret("good"))]) }
        let decoded = try JSONDecoder().decode([CredentialReference.Source].self, from: encoded())
        #expect(try #require(decoded[0].memory).secret == nil)
    }
}

extension CredentialReference.Source {
    fileprivate var memory: MemorySecret? {
        if case .memory(let secret) = self { secret } else { nil }
    }
}
