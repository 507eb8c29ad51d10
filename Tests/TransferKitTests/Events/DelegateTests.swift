import Foundation
import Locking
import Logging
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct DelegateTests {
    @Test func receivesSameEventsAsSubscribers() async throws {
        let fixture = try QueueFixture()
        fixture.memory.faults.append(.cut(afterBytes: 3_000))
        let queue = try await fixture.openWithAccounts()
        let delegate = RecordingDelegate()
        queue.setDelegate(delegate)
        let events = queue.events
        let session = try await queue.enqueue(try fixture.upload("1", "2", options: SessionOptions(retry: RetryPolicy(base: .zero))))
        try await queue.start()
        await queue.waitUntilIdle()
        try await session.remove()
        await queue.shutdown()
        await queue.waitForDelegate()
        let kinds = await events.collect().map(\.kind)
        #expect(kinds.map(\.name).contains("attemptFailed") && kinds.last == .queueStopped)
        #expect(await delegate.kinds == kinds)
        #expect(await delegate.overlaps == 0)
    }

    @Test func receivesEveryKindOfEvent() async throws {
        let fixture = try QueueFixture()
        // The folder is deleted with the fixture, so the fixture must live until the end of the test.
        defer { withExtendedLifetime(fixture) {} }
        let queue = try await fixture.open()
        let delegate = RecordingDelegate()
        let hub = EventHub()
        let delivery = DelegateDelivery()
        delivery.start(delegate, of: queue, events: hub.subscribe(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        for kind in EventCodingTests.kinds { hub.send(kind) }
        hub.finish()
        await delivery.finish()
        #expect(await delegate.kinds == EventCodingTests.kinds)
        let requests = EventCodingTests.kinds.count { if case .needsCredentials = $0 { true } else { false } }
        #expect(await delegate.credentialsRequests == requests)
        await queue.shutdown()
    }

    @Test func warnsAboutReleasedDelegate() async throws {
        let fixture = try QueueFixture()
        defer { withExtendedLifetime(fixture) {} }
        let log = CountingLog(warnings: Locked(0))
        let queue = try await fixture.open(logger: Logger(label: "test") { _ in log })
        queue.setDelegate(RecordingDelegate())
        try await queue.start()
        await queue.shutdown()
        await queue.waitForDelegate()
        #expect(log.messages.withLock { $0.contains { $0.level == .warning && $0.text.hasPrefix("The delegate was released") } })
    }

    @MainActor private final class MainDelegate: TransferQueueDelegate {
        var starts = 0
        func queue(_ queue: TransferQueue, didReceive event: QueueEvent) {
            MainActor.preconditionIsolated()
            if event.kind == .queueStarted { starts += 1 }
        }
    }

    @Test @MainActor func callsMainActorDelegateOnMainActor() async throws {
        let fixture = try QueueFixture()
        defer { withExtendedLifetime(fixture) {} }
        let queue = try await fixture.open()
        let delegate = MainDelegate()
        queue.setDelegate(delegate)
        try await queue.start()
        try await queue.stop()
        await queue.shutdown()
        await queue.waitForDelegate()
        #expect(delegate.starts == 1)
    }

    /// A delegate that suspends in its first call until the test resumes it.
    private actor SlowDelegate: TransferQueueDelegate {
        private(set) var missed: [ClosedRange<UInt64>] = []
        private(set) var activations = 0
        private let entered: AsyncStream<Void>.Continuation
        private let leave: AsyncStream<Void>

        init(entered: AsyncStream<Void>.Continuation, leave: AsyncStream<Void>) {
            self.entered = entered
            self.leave = leave
        }

        func queue(_ queue: TransferQueue, didReceive event: QueueEvent) async {
            switch event.kind {
            case .queueStarted:
                entered.yield()
                for await _ in leave {}
            case .didActivate: activations += 1
            case .gap(let first, let last): missed.append(first...last)
            default: break
            }
        }
    }

    @Test func slowDelegateReceivesGap() async throws {
        let fixture = try QueueFixture()
        defer { withExtendedLifetime(fixture) {} }
        let queue = try await fixture.open()
        let (entered, enter) = AsyncStream.makeStream(of: Void.self)
        let (left, leave) = AsyncStream.makeStream(of: Void.self)
        let delegate = SlowDelegate(entered: enter, leave: left)
        let hub = EventHub(capacity: 16)
        let delivery = DelegateDelivery()
        delivery.start(delegate, of: queue, events: hub.subscribe(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        hub.send(.queueStarted)
        for await _ in entered { break }
        for _ in 1...100 { hub.send(.didActivate(SessionID())) }
        leave.finish()
        hub.finish()
        await delivery.finish()
        #expect(await delegate.activations == 15)
        #expect(await delegate.missed == [17...101])
        await queue.shutdown()
    }

    @Test(arguments: [(CredentialsDecision.retry, true), (.later, false)])
    func onlyRetryDecisionUnblocksAccount(decision: CredentialsDecision, unblocks: Bool) async throws {
        let memory = MemoryTransport(acceptedSecret: "good")
        let fixture = try QueueFixture(memory: memory)
        let queue = try await fixture.openWithAccounts()
        _ = try await queue.enqueue(try fixture.upload("1"))
        let events = queue.events
        try await queue.start()
        _ = await events.first { if case .accountBlocked = $0 { true } else { nil } }
        try await queue.stop()
        #expect(await queue.account("a")?.blockingError != nil)
        let delegate = RecordingDelegate(decision: decision)
        let hub = EventHub()
        let delivery = DelegateDelivery()
        delivery.start(delegate, of: queue, events: hub.subscribe(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        hub.send(.needsCredentials(account: "a", EventCodingTests.error), .needsCredentials(account: "none", EventCodingTests.error))
        hub.finish()
        await delivery.finish()
        #expect(await (queue.account("a")?.blockingError == nil) == unblocks)
        await queue.shutdown()
    }

    @Test func delegateIsWeaklyReferencedAndReplaceable() async throws {
        let fixture = try QueueFixture()
        defer { withExtendedLifetime(fixture) {} }
        let queue = try await fixture.open()
        var first: RecordingDelegate? = RecordingDelegate()
        weak let reference = first
        queue.setDelegate(first)
        first = nil
        #expect(reference == nil)
        let (second, third) = (RecordingDelegate(), RecordingDelegate())
        queue.setDelegate(second)
        queue.setDelegate(third)
        try await queue.start()
        queue.setDelegate(nil)
        let fourth = RecordingDelegate()
        queue.setDelegate(fourth)
        await queue.shutdown()
        await queue.waitForDelegate()
        #expect(await second.kinds.isEmpty)
        // The third delegate may have received events before the test removed it, but none afterwards.
        #expect(await third.kinds.allSatisfy { $0 == .queueStarted || $0 == .queueBecameIdle })
        #expect(await fourth.kinds == [.queueStopped])
    }

    private actor ShuttingDownDelegate: TransferQueueDelegate {
        private(set) var hasStopped = false
        private let started: AsyncStream<Void>.Continuation
        private let ended: AsyncStream<Void>.Continuation

        init(started: AsyncStream<Void>.Continuation, ended: AsyncStream<Void>.Continuation) {
            self.started = started
            self.ended = ended
        }

        func queue(_ queue: TransferQueue, didReceive event: QueueEvent) async {
            switch event.kind {
            case .queueStarted:
                started.finish()
                await queue.shutdown()
            case .queueStopped:
                hasStopped = true
                ended.finish()
            default: break
            }
        }
    }

    @Test func delegateCanShutDownQueueAndReceivesLastEvent() async throws {
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let (started, start) = AsyncStream.makeStream(of: Void.self)
        let delegate = ShuttingDownDelegate(started: start, ended: end)
        let fixture = try QueueFixture()
        var queue: TransferQueue? = try await fixture.open(delegate: delegate)
        try await queue?.start()
        for await _ in started {}
        queue = nil
        for await _ in ended {}
        #expect(await delegate.hasStopped)
    }
}
