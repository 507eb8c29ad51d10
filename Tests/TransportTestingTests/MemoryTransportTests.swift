import Foundation
import Testing
import TransferCore
import TransportTesting

@Suite struct MemoryTransportTests {
    let bench: Workbench
    let memory = MemoryTransport(chunkSize: 1000)
    let recording = RecordingReporter()

    init() throws {
        bench = try Workbench()
    }

    @Test func `received bytes survive a lost connection, and the next attempt resumes after them`() async throws {
        let content = bytes(4500)
        let source = try bench.source(content)
        memory.faults.append(.cut(afterBytes: 2500))
        let error = await #expect(throws: TransferError.self) {
            try await memory.perform(bench.attempt(source, at: memory.endpoint()), reporting: recording.reporter)
        }
        #expect(error?.code == .connectionLost)
        #expect(memory.partialContents(of: "file") == content.prefix(2500))
        #expect(memory.contents(of: "file") == nil)
        #expect(recording.checkpoints.map(\.confirmed) == [0, 1000, 2000])

        let last = try #require(recording.checkpoints.last)
        let again = try bench.attempt(source, at: memory.endpoint(), from: last, number: 2)
        let receipt = try await memory.perform(again, reporting: recording.reporter)
        #expect(receipt.bytes == 4500)
        #expect(memory.contents(of: "file") == content)
        #expect(memory.attempts.map(\.startOffset) == [0, 2500])
        #expect(memory.attempts.map(\.bytesMoved) == [2500, 2000])
        #expect(memory.attempts.last?.outcome == .completed)
        #expect(memory.faults.isEmpty)
    }

    @Test func `a connection lost after the last byte loses only the response`() async throws {
        let source = try bench.source(bytes(1500))
        memory.faults.append(.cut(afterBytes: 9999))
        await #expect(throws: TransferError.self) {
            try await memory.perform(bench.attempt(source, at: memory.endpoint()), reporting: recording.reporter)
        }
        #expect(memory.contents(of: "file")?.count == 1500)
        let again = try bench.attempt(source, at: memory.endpoint(), from: recording.checkpoints.last)
        #expect(try await memory.perform(again, reporting: recording.reporter).bytes == 1500)
        #expect(memory.attempts.last?.bytesMoved == 0)
    }

    @Test func `a gate holds an attempt at its position until the gate opens`() async throws {
        let source = try bench.source(bytes(3000))
        let gate = memory.gate("file", atByte: 1700)
        async let receipt = memory.perform(bench.attempt(source, at: memory.endpoint()), reporting: recording.reporter)
        try await gate.reached()
        #expect(memory.partialContents(of: "file")?.count == 1700)
        #expect(memory.runningCount == 1)
        gate.open()
        #expect(try await receipt.bytes == 3000)
        #expect(memory.runningCount == 0)
    }

    @Test func `cancellation ends an attempt that waits at a gate`() async throws {
        let source = try bench.source(bytes(3000))
        let gate = memory.gate("file")
        let attempt = try bench.attempt(source, at: memory.endpoint())
        let task = Task { try await memory.perform(attempt, reporting: recording.reporter) }
        try await gate.reached()
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(memory.attempts.map(\.outcome) == [.cancelled])
    }

    @Test func `injected errors affect only attempts for the given path`() async throws {
        let source = try bench.source(bytes(10))
        let busy = TransferError(.transient, .serverError, "The server is busy.")
        memory.failNext(2, with: busy, for: "b")
        _ = try await memory.perform(bench.attempt(source, as: "a", at: memory.endpoint()), reporting: recording.reporter)
        for _ in 1...2 {
            await #expect(throws: busy) {
                try await memory.perform(bench.attempt(source, as: "b", at: memory.endpoint()), reporting: recording.reporter)
            }
        }
        _ = try await memory.perform(bench.attempt(source, as: "b", at: memory.endpoint()), reporting: recording.reporter)
        #expect(memory.completePaths.map(\.description) == ["a", "b"])
    }

    @Test func `uploads that the server forgot can't resume`() async throws {
        let source = try bench.source(bytes(3000))
        memory.faults.append(.cut(afterBytes: 2000))
        memory.faults.append(.forget)
        await #expect(throws: TransferError.self) {
            try await memory.perform(bench.attempt(source, at: memory.endpoint()), reporting: recording.reporter)
        }
        let again = try bench.attempt(source, at: memory.endpoint(), from: recording.checkpoints.last)
        let error = await #expect(throws: TransferError.self) { try await memory.perform(again, reporting: recording.reporter) }
        #expect(error?.failureClass == .resumeLost)
        #expect(memory.partialCount == 0)
    }

    @Test func `discarding removes only unfinished content`() async throws {
        let source = try bench.source(bytes(3000))
        let credentials = FixedCredentials(value: "")
        memory.faults.append(.cut(afterBytes: 2000))
        await #expect(throws: TransferError.self) {
            try await memory.perform(bench.attempt(source, as: "half", at: memory.endpoint()), reporting: recording.reporter)
        }
        try await memory.discard(#require(recording.checkpoints.last), at: memory.endpoint(), credentials: credentials)
        #expect(memory.partialContents(of: "half") == nil)
        _ = try await memory.perform(bench.attempt(source, as: "whole", at: memory.endpoint()), reporting: recording.reporter)
        try await memory.discard(#require(recording.checkpoints.last), at: memory.endpoint(), credentials: credentials)
        #expect(memory.contents(of: "whole")?.count == 3000)
    }

    @Test func `the transport rejects hosts and credentials as configured`() async throws {
        let strict = MemoryTransport(acceptedSecret: "right")
        let source = try bench.source(bytes(3))
        let endpoint = strict.endpoint(host: "a.example", credentials: [.bearer(.environment("TOKEN"))])
        let refused = await #expect(throws: TransferError.self) {
            try await strict.perform(bench.attempt(source, at: endpoint), reporting: recording.reporter)
        }
        #expect(refused?.failureClass == .credentials)
        memory.refuse(host: "a.example")
        let credentials = FixedCredentials(value: "")
        let unreachable = await #expect(throws: TransferError.self) {
            try await memory.check(memory.endpoint(host: "a.example"), credentials: credentials)
        }
        #expect(unreachable?.failureClass == .unreachable)
        memory.accept(host: "a.example")
        _ = try await memory.check(memory.endpoint(host: "a.example"), credentials: credentials)
    }

    @Test func `tests can wait for attempts to start`() async throws {
        let source = try bench.source(bytes(3))
        async let started = memory.attemptsStarted(2)
        for name in ["a", "b"] {
            _ = try await memory.perform(bench.attempt(source, as: name, at: memory.endpoint()), reporting: recording.reporter)
        }
        #expect(try await started.map(\.path.description) == ["a", "b"])
        #expect(memory.peakRunningCount == 1)
    }
}
