import Dispatch
import Locking
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// Blocking calls, which must delay neither the cooperative pool nor other blocking calls.
@Suite(.serialized) struct BlockingIOTests {
    /// A gate that blocks calling threads until the test opens it.
    private final class Gate: Sendable {
        private let entered = DispatchSemaphore(value: 0)
        private let exit = DispatchSemaphore(value: 0)

        func block() {
            entered.signal()
            exit.wait()
        }

        /// Returns when `count` threads are blocked.
        func waitForBlockedThreads(_ count: Int) async {
            await withCheckedContinuation { continuation in
                DispatchQueue(label: "waiting").async { [entered] in
                    for _ in 0..<count { entered.wait() }
                    continuation.resume()
                }
            }
        }

        func open(_ count: Int) { for _ in 0..<count { exit.signal() } }
    }

    /// On the pool's threads, more blocked calls than cores would block every task until Dispatch replaces the blocked threads after a
    /// second.
    @Test(arguments: [4, 64]) func blockedCallsDoNotOccupyPool(_ count: Int) async {
        let gate = Gate()
        let blocked = Task {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<count { group.addTask { await BlockingIO.run { gate.block() } } }
            }
        }
        await gate.waitForBlockedThreads(count)
        let clock = ContinuousClock()
        let start = clock.now
        for _ in 0..<1_000 { await Task.detached {}.value }
        print("A task took \((clock.now - start) / 1_000) to begin while \(count) calls blocked.")
        gate.open(count)
        await blocked.value
        #expect(await BlockingIO.run { 7 } == 7)
    }

    /// All calls of a lane hang, like calls to a network share that does not respond.
    @Test(arguments: BlockingIO.Lane.allCases) func hangingLaneDoesNotAffectOthers(_ lane: BlockingIO.Lane) async {
        let gate = Gate()
        let blocked = Task {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<lane.limit { group.addTask { await BlockingIO.run(lane) { gate.block() } } }
            }
        }
        await gate.waitForBlockedThreads(lane.limit)
        for other in BlockingIO.Lane.allCases where other != lane { #expect(await BlockingIO.run(other) { 7 } == 7) }
        gate.open(lane.limit)
        await blocked.value
    }

    /// Hanging calls for local files don't delay a stream, because the stream's spool is in the storage folder, which has its own lane.
    @Test func shutsDownQueueWithStreamWhileFilesHang() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let (chunks, continuation) = AsyncStream.makeStream(of: [UInt8].self)
        _ = try await queue.enqueue(.upload(items: [.stream(chunks, as: try RemotePath("stream"))], to: "a"))
        let gate = Gate()
        let blocked = Task {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<64 { group.addTask { await BlockingIO.run { gate.block() } } }
            }
        }
        await gate.waitForBlockedThreads(64)
        await queue.shutdown()
        gate.open(64)
        await blocked.value
        continuation.finish()
    }

    @Test func callsBeyondLimitWaitForThread() async {
        let gate = Gate()
        let done = Locked(0)
        let calls = Task {
            await withTaskGroup(of: Void.self) { group in
                for _ in 0..<200 {
                    group.addTask {
                        await BlockingIO.run { gate.block() }
                        done.withLock { $0 += 1 }
                    }
                }
            }
        }
        await gate.waitForBlockedThreads(64)
        #expect(done.withLock { $0 } == 0)
        gate.open(200)
        await calls.value
        #expect(done.withLock { $0 } == 200)
    }
}
