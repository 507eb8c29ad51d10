import Foundation
import Testing
import TransferKit
import TransportTesting
import UploadList

/// Tests of an app's model. The real queue runs, with a transport that keeps files in memory and fails on demand, so no server is needed.
@Suite(.timeLimit(.minutes(1))) @MainActor struct UploadListTests {
    let memory = MemoryTransport()
    let queue: TransferQueue
    let list: UploadList
    let changes: AsyncStream<Void>

    /// Creates a list with two sessions, `first` and `second`.
    init() async throws {
        queue = try await TransferQueue(storage: .inMemory, transports: [memory])
        try await queue.save(Account("studio", endpoints: [memory.endpoint()]))
        list = UploadList(queue)
        let (changes, sink) = AsyncStream.makeStream(of: Void.self)
        self.changes = changes
        list.onChange = { sink.yield() }
        await list.follow()
        // A short delay before retries keeps the tests fast.
        let options = SessionOptions(retry: RetryPolicy(base: .milliseconds(1)))
        try await queue.enqueue(
            ["first", "second"].map { name in
                try .upload(items: [.data(Data(repeating: 7, count: 300_000), as: name)], to: "studio", name: name, options: options)
            })
    }

    /// Waits for changes of the list until a condition is met.
    func wait(until isMet: () -> Bool) async {
        if isMet() { return }
        for await _ in changes where isMet() { return }
    }

    /// Waits until the rows have these states.
    func wait(for states: SessionState...) async {
        await wait { list.rows.map(\.state) == states }
    }

    @Test func runNowInterruptsAndUndoResumes() async throws {
        let (first, second) = (memory.gate("first", atByte: 65_536), memory.gate("second", atByte: 65_536))
        try await queue.start()
        // The gate stops the upload in the middle, regardless of the machine's speed.
        try await first.reached()
        await wait(for: .running, .waiting)

        try await list.runNow(list.rows[1].id)
        try await second.reached()
        await wait(for: .waiting, .running)

        try await list.undo()
        await wait(for: .running, .waiting)

        first.open()
        second.open()
        await wait(for: .completed, .completed)
        #expect(memory.contents(of: "first") == Data(repeating: 7, count: 300_000))
        await queue.shutdown()
    }

    @Test func showsErrorOfFailedSession() async throws {
        memory.failNext(with: TransferError(.permanent, .forbidden, "The server does not allow this file."), for: "first")
        try await queue.start()
        await wait(for: .failed, .completed)
        #expect(list.rows[0].error?.message == "The server does not allow this file.")
        await queue.shutdown()
    }

    @Test func survivesLostConnection() async throws {
        memory.faults.append(.cut(afterBytes: 100_000), for: "first")
        try await queue.start()
        await wait(for: .completed, .completed)
        #expect(list.rows[0].attempts == 2)
        #expect(memory.contents(of: "first") == Data(repeating: 7, count: 300_000))
        await queue.shutdown()
    }

    @Test func undoesMovesPausesAndCancellations() async throws {
        await wait(for: .waiting, .waiting)
        let (first, second) = (list.rows[0].id, list.rows[1].id)

        try await list.move(second, to: 0)
        // The queue is stopped, so a pause holds the session.
        try await list.pause(first)
        try await list.cancel(second)
        await wait(for: .cancelled, .held)
        #expect(list.rows.map(\.id) == [second, first])

        for _ in 0..<3 { try await list.undo() }
        #expect(!list.canUndo)
        await wait { list.rows.map(\.id) == [first, second] && list.rows.allSatisfy { $0.state == .waiting } }
        await queue.shutdown()
    }
}
