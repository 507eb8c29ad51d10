import Foundation
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct HungRunTests {
    /// A memory transport whose attempts to send certain files hang until ``release()``, even if the attempts are cancelled.
    private final class HangingTransport: Transport {
        let id: TransportID = "memory"
        let memory: MemoryTransport
        private let isHung: @Sendable (String) -> Bool
        private let released = Locked(false)
        private let waiting = Locked<[CheckedContinuation<Void, Never>]>([])
        private let begun = AsyncStream<Void>.makeStream()
        private let hangsInShutdown: Bool
        /// The numbers of bytes that each hanging attempt reports before it hangs.
        private let progress: (sent: Int64, confirmed: Int64)
        /// The error that each hanging attempt throws after ``release()``; nil if the attempts succeed.
        private let failure: TransferError?

        init(
            _ memory: MemoryTransport, hangsInShutdown: Bool = false, progress: (sent: Int64, confirmed: Int64) = (0, 0),
            failure: TransferError? = nil, isHung: @escaping @Sendable (String) -> Bool
        ) {
            self.memory = memory
            self.hangsInShutdown = hangsInShutdown
            self.progress = progress
            self.failure = failure
            self.isHung = isHung
        }

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            guard isHung(attempt.remotePath.description), !released.withLock({ $0 }) else {
                return try await memory.perform(attempt, reporting: reporter)
            }
            if progress.confirmed > 0 { try await reporter.save(Checkpoint(data: Data("part".utf8), confirmed: progress.confirmed)) }
            reporter.report(sent: progress.sent, confirmed: progress.confirmed)
            await hang()
            if let failure { throw failure }
            let size = try attempt.source.size
            reporter.report(sent: size, confirmed: size)
            return TransferReceipt(bytes: size)
        }

        private func hang() async {
            await withCheckedContinuation { continuation in
                waiting.withLock { $0.append(continuation) }
                begun.continuation.yield()
            }
        }

        /// Returns when `count` more attempts hang.
        func waitForHangingAttempts(_ count: Int = 1) async {
            var left = count
            for await _ in begun.stream {
                left -= 1
                if left == 0 { return }
            }
        }

        func release() {
            released.withLock { $0 = true }
            let continuations = waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            for continuation in continuations { continuation.resume() }
        }

        func shutdown() async {
            if hangsInShutdown { await hang() }
            await memory.shutdown()
        }
    }

    @Test func freesSlotAndDropsReportsOfHungRun() async throws {
        let fixture = try QueueFixture()
        let transport = HangingTransport(fixture.memory) { $0 == "1" }
        let log = CountingLog(warnings: Locked(0))
        let queue = try await fixture.open(transports: [transport], logger: Logger(label: "test") { _ in log })
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let hung = try await queue.enqueue(try fixture.upload("1"))
        let other = try await queue.enqueue(try fixture.upload("2"))
        try await queue.start()
        await transport.waitForHangingAttempts()
        let stop = Task { try await queue.stopAndWait() }
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        #expect(try await stop.value == .interrupted)
        #expect(log.messages.withLock { $0 }.contains { $0.level == .warning && $0.text.contains("has not ended within") })

        try await queue.start()
        #expect(try await other.value.state == .completed)
        #expect(try await hung.status.why == .lastRunNotEnded)
        try await hung.run()
        #expect(try await hung.status.why == .lastRunNotEnded, "even a user's call can't start the session")

        transport.release()
        #expect(try await hung.value.state == .completed)
        // The queue ignored the late result of the first run, and a second run sent the file.
        #expect(fixture.memory.contents(of: "1") == (try fixture.content("1")))
        await queue.shutdown()
    }

    @Test(arguments: [0, 3_000]) func keepsStatisticsOfAbandonedRun(confirmed: Int64) async throws {
        let fixture = try QueueFixture()
        let transport = HangingTransport(fixture.memory, progress: (sent: 8_000, confirmed: confirmed)) { $0 == "1" }
        let queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        await transport.waitForHangingAttempts()
        let before = try await queue.statistics()
        #expect(before.bytesSent == 8_000 && before.bytesDone == confirmed)
        try await session.pause()
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        while try await session.status.phase == .ending { await Task.yield() }
        let paused = try await session.status.statistics
        #expect(paused.bytesSent == 8_000 && paused.bytesDone == confirmed)
        let all = try await queue.statistics()
        #expect(all.bytesSent == 8_000 && all.bytesDone == confirmed)
        transport.release()
        await queue.shutdown()
    }

    /// If the queue withdrew the session before the session's run had ended, this queue and the next one could send the same file.
    @Test func sessionIsNotWithdrawnBeforeItsRunHasEnded() async throws {
        let fixture = try QueueFixture()
        let transport = HangingTransport(fixture.memory) { $0 == "1" }
        let queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let hung = try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        await transport.waitForHangingAttempts()
        let withdrawal = Task { try await queue.withdraw(hung.id) }
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        #expect(try await #require(throws: QueueError.self) { try await withdrawal.value }.code == .invalidTransition)
        #expect(await queue.sessionIDs() == [hung.id])
        transport.release()
        while (try? await queue.withdraw(hung.id)) == nil { await Task.yield() }
        #expect(await queue.sessionIDs().isEmpty)
        await queue.shutdown()
    }

    @Test(arguments: [false, true]) func shutsDownDespiteHungRun(_ hangsInShutdown: Bool) async throws {
        let fixture = try QueueFixture()
        let transport = HangingTransport(fixture.memory, hangsInShutdown: hangsInShutdown) { $0 == "1" }
        let queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        await transport.waitForHangingAttempts()
        let shutdown = Task { await queue.shutdown() }
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        if hangsInShutdown {
            await transport.waitForHangingAttempts()
            await fixture.clock.waitForSleep(of: .seconds(30))
            fixture.clock.advance(by: .seconds(30))
        }
        await shutdown.value

        // The queue that opens the folder next finds the session unfinished.
        let next = try await fixture.open()
        try await next.start()
        #expect(try await next.status(of: session.id).state != .completed)
        let events = next.events
        if try await next.status(of: session.id).state != .completed {
            _ = await events.first { if case .completed = $0 { true } else { nil } }
        }
        transport.release()
        await next.shutdown()
    }

    @Test func forgetsFailuresOfAbandonedRun() async throws {
        let fixture = try QueueFixture()
        let transport = HangingTransport(fixture.memory) { $0 == "2" }
        let queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        fixture.memory.failNext(with: TransferError(.transient, .serverError, "Busy."))
        let retry = RetryPolicy(base: .seconds(1_000), maximumDelay: .seconds(1_000))
        let session = try await queue.enqueue(
            try fixture.upload("1", "2", options: SessionOptions(retry: retry, filesInFlight: 2)))
        try await queue.start()
        await transport.waitForHangingAttempts()
        while try await session.status.error == nil { await Task.yield() }
        let stop = Task { try await queue.stopAndWait() }
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        #expect(try await stop.value == .interrupted)
        try await queue.cancel(session.id)
        try await queue.retry(session.id)
        transport.release()
        try await queue.start()
        var status = try await session.status
        while status.state != .completed {
            if case .retry = status.why {
                Issue.record("The session still waits for the retry of the abandoned run.")
                break
            }
            await Task.yield()
            status = try await session.status
        }
        await queue.shutdown()
    }

    @Test func hungSessionFailsAtDeadline() async throws {
        let fixture = try QueueFixture()
        let transport = HangingTransport(fixture.memory) { $0 == "1" }
        let queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(
            try fixture.upload("1", options: SessionOptions(stallTimeout: .seconds(100_000), deadline: .seconds(100))))
        let other = try await queue.enqueue(try fixture.upload("2"))
        try await queue.start()
        await transport.waitForHangingAttempts()
        await fixture.clock.waitForSleep(of: .seconds(100))
        fixture.clock.advance(by: .seconds(100))
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.code == .deadlineExceeded)
        #expect(try await other.value.state == .completed)
        try await session.retry()
        #expect(try await session.status.why == .lastRunNotEnded)
        transport.release()
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }

    @Test func limitsHungRuns() async throws {
        let fixture = try QueueFixture()
        let transport = HangingTransport(fixture.memory) { _ in true }
        let queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        try await queue.setMaxConcurrentSessions(16)
        var hung: [TransferSession] = []
        for index in 0..<16 { hung.append(try await queue.enqueue(try fixture.upload("\(index)"))) }
        let last = try await queue.enqueue(try fixture.upload("last"))
        try await queue.start()
        await transport.waitForHangingAttempts(16)
        let stop = Task { try await queue.stopAndWait() }
        await fixture.clock.waitForSleep(of: .seconds(30), count: 16)
        fixture.clock.advance(by: .seconds(30))
        #expect(try await stop.value == .interrupted)
        try await queue.start()
        #expect(try await last.status.why == .runsNotEnded(16))
        #expect(await queue.status().isIdle)
        transport.release()
        for session in hung + [last] { #expect(try await session.value.state == .completed) }
        await queue.shutdown()
    }

    @Test func abandonsRunOfRemovedSession() async throws {
        let fixture = try QueueFixture()
        let transport = HangingTransport(fixture.memory) { $0 == "1" }
        let queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let hung = try await queue.enqueue(try fixture.upload("1"))
        let other = try await queue.enqueue(try fixture.upload("2"))
        try await queue.start()
        await transport.waitForHangingAttempts()
        try await queue.remove(hung.id)
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        #expect(try await other.value.state == .completed)
        transport.release()
        await queue.shutdown()
    }

    @Test(arguments: [false, true]) func abandonsHungFolderWalk(_ shutsDown: Bool) async throws {
        let fixture = try QueueFixture()
        let tree = try FolderTree(fixture.folder.path.appending("tree"))
        try tree.file("inner/1")
        let gate = ThreadGate()
        let root = tree.root
        let queue = try await fixture.open(localReadObserver: { if $0 == root { gate.block() } })
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let hung = try await queue.enqueue(.upload([root], to: "a"))
        let other = try await queue.enqueue(try fixture.upload("2"))
        try await queue.start()
        await gate.waitForBlockedThreads(1)
        let end = Task { if shutsDown { await queue.shutdown() } else { try await hung.hold() } }
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        try await end.value
        if !shutsDown {
            #expect(try await other.value.state == .completed, "the slot is free")
            try await hung.release()
            #expect(try await hung.status.why == .lastRunNotEnded)
            gate.open(2)
            #expect(try await hung.value.state == .completed)
            await queue.shutdown()
        }
        gate.open(1)
    }

    @Test func failedSessionDoesNotWaitForHungFolder() async throws {
        let fixture = try QueueFixture()
        let tree = try FolderTree(fixture.folder.path.appending("tree"))
        try tree.file("inner/1")
        let gate = ThreadGate()
        let root = tree.root
        let transport = HangingTransport(fixture.memory, failure: TransferError(.permanent, .rejected, "No.")) { $0 == "1" }
        let queue = try await fixture.open(transports: [transport], localReadObserver: { if $0 == root { gate.block() } })
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(
            .upload([try fixture.folder.file("1", size: 10_000), root], to: "a", options: SessionOptions(onItemFailure: .failSession)))
        let other = try await queue.enqueue(try fixture.upload("2"))
        try await queue.start()
        await gate.waitForBlockedThreads(1)
        await transport.waitForHangingAttempts()
        transport.release()
        await fixture.clock.waitForSleep(of: .seconds(30))
        fixture.clock.advance(by: .seconds(30))
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(try await session.status.error?.message == "No.")
        #expect(try await other.value.state == .completed, "the slot is free")
        #expect(await queue.hasUnendedRun(of: session.id), "a member of a fleet must keep the session")
        try await session.retry()
        #expect(try await session.status.why == .lastRunNotEnded)
        gate.open(2)
        #expect(try await session.value.state == .completed)
        #expect(await !queue.hasUnendedRun(of: session.id))
        await queue.shutdown()
    }

    private struct Rejection: Error {}

    @Test func runThatCannotStoreProgressDoesNotWaitForHungFile() async throws {
        let fixture = try QueueFixture()
        let transport = HangingTransport(fixture.memory) { $0 == "1" }
        let rejects = Locked(true)
        let queue = try await fixture.open(
            transports: [transport],
            progressObserver: { _, progress in
                if case .completed = progress.event, rejects.withLock(\.self) { throw Rejection() }
            })
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let hung = try await queue.enqueue(try fixture.upload("1", "2", options: SessionOptions(filesInFlight: 2)))
        let other = try await queue.enqueue(try fixture.upload("3"))
        try await queue.start()
        await transport.waitForHangingAttempts()
        await fixture.clock.waitForSleep(of: .seconds(30))
        rejects.withLock { $0 = false }
        fixture.clock.advance(by: .seconds(30))
        #expect(try await other.value.state == .completed, "the slot is free")
        #expect(try await hung.status.why == .lastRunNotEnded)
        transport.release()
        #expect(try await hung.value.state == .completed)
        await queue.shutdown()
    }
}
