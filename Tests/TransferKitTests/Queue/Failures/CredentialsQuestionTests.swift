import Foundation
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The queue's requests for credentials: how often it asks the delegate, and how soon it retries afterwards.
@Suite struct CredentialsQuestionTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture(memory: MemoryTransport(acceptedSecret: "good"))
    }

    /// A delegate that counts the requests for credentials, and always returns the same value.
    private actor Answers: TransferQueueDelegate {
        private(set) var count = 0
        private let answer: CredentialsAnswer

        init(_ answer: CredentialsAnswer) {
            self.answer = answer
        }

        func queue(_ queue: TransferQueue, didReceive event: QueueEvent) {}

        func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) -> CredentialsAnswer {
            count += 1
            return answer
        }
    }

    /// If the server rejects the delegate's credentials again and again, the delay before the next request doubles each time.
    @Test func delaysUseOfRejectedCredentials() async throws {
        let delegate = Answers(.retry)
        let queue = try await fixture.open(delegate: delegate)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        for (questions, delay) in [(2, Duration.seconds(1)), (3, .seconds(2)), (4, .seconds(4))] {
            await fixture.clock.waitForSleep(of: delay)
            #expect(await delegate.count == questions)
            #expect(fixture.memory.attempts.count == questions)
            #expect(await queue.account("a")?.blockingError != nil)
            fixture.clock.advance(by: delay)
        }
        await queue.shutdown()
    }

    /// A new process finds the account blocked, and asks its own delegate once.
    @Test func nextProcessAsksForCredentialsOnce() async throws {
        var delegate = Answers(.later)
        var queue = try await fixture.open(delegate: delegate)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        await queue.waitUntilIdle()
        try await queue.stopAndWait()
        try await queue.start()
        await queue.shutdown()
        #expect(await delegate.count == 1)

        delegate = Answers(.later)
        queue = try await fixture.open(delegate: delegate)
        try await queue.start()
        try await queue.stopAndWait()
        try await queue.start()
        await queue.shutdown()
        #expect(await delegate.count == 1)
        #expect(fixture.memory.attempts.count == 1)
    }

    /// A server of tokens that is down must not block the account.
    @Test func errorOfAppKeepsItsClass() async throws {
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
        let fixed = ReferencedCredentials(values: ["studio": Secret("in memory")])
        #expect(try await fixed.secret(for: .bearer(.app("studio"))).reveal() == "in memory")
        for provider in [credentials, fixed, ReferencedCredentials()] {
            let error = await #expect(throws: TransferError.self) { try await provider.secret(for: .bearer(.app("other"))) }
            #expect(error?.code == .credentialsUnavailable && error?.message.contains("\"other\"") == true)
        }
        let stored = try JSONEncoder().encode(CredentialReference.password(.app("studio")))
        #expect(try JSONDecoder().decode(CredentialReference.self, from: stored) == .password(.app("studio")))
    }
}
