import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// Each operation has the same result in a local queue and in a fleet, in each state of a session.
@Suite(.timeLimit(.minutes(2))) struct OperationTableTests {
    /// Completes, fails or never ends the transfer of a file, according to the file's name.
    private struct NamedTransport: Transport {
        let id: TransportID = "named"

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            switch "\(attempt.remotePath)" {
            case "complete": return TransferReceipt(bytes: 1)
            case "fail": throw TransferError(.permanent, .rejected, "no")
            default:
                try await Task.sleep(for: .seconds(3_600))
                throw CancellationError()
            }
        }

        func shutdown() async {}
    }

    private enum Outcome: Equatable {
        case refused(QueueError.Code)
        case removed
        /// The session is running or waiting to run.
        case active
        case state(SessionState)
    }

    private static let operations: [SessionOperation] = [
        .run(), .runNext, .pause, .resume, .hold, .release, .yield, .cancel(), .retry, .move(to: .front), .move(to: .end), .remove(),
        .update(SessionUpdate(name: "other")),
    ]

    /// Whether a fleet and a local queue have different results, as documented: a fleet can't update a session that a member has.
    private static func differs(_ operation: SessionOperation, _ state: SessionState) -> Bool {
        if case .update = operation { return state == .running || state == .paused }
        return false
    }

    private func outcome(of operation: SessionOperation, on id: SessionID, in queue: some ControllableQueue) async throws -> Outcome {
        do {
            _ = try await queue.apply(operation, to: .id(id))
            var state = try await queue.status(of: id).state
            // A local queue cancels or pauses a running session after the session's run has ended.
            let stops = [.pause, .hold, .cancel()].contains(operation)
            while stops, state == .running { state = try await queue.status(of: id).state }
            return state == .waiting || state == .running ? .active : .state(state)
        } catch let error as QueueError {
            return error.code == .noSuchSession ? .removed : .refused(error.code)
        }
    }

    @Test(arguments: [.waiting, .running, .paused, .held, .cancelled, .failed, .completed] as [SessionState])
    func `operations have the same results in a local queue and in a fleet`(state: SessionState) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "operations-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        for name in ["complete", "fail", "wait"] { try Data("x".utf8).write(to: folder.appending(path: name)) }
        let fleet = try await FleetFixture()
        let member = try await fleet.join("m")
        for operation in Self.operations where !Self.differs(operation, state) {
            let local = try await TransferQueue(
                storage: .inMemory, transports: [NamedTransport()], configuration: QueueConfiguration(maxConcurrentSessions: 1))
            try await local.save(Account("studio", endpoints: [Endpoint(transport: "named", address: "named://here/")]))
            try await local.start()
            let expected = try await outcome(
                of: operation, on: try await prepare(state, in: local, files: FilePath(folder.path)), in: local)
            await local.shutdown()
            let found = try await outcome(of: operation, on: try await prepare(state, in: fleet, member), in: fleet.fleet)
            #expect(found == expected, "\(operation) of a session that is \(state)")
            try await fleet.query("DELETE FROM session")
            try await fleet.query("UPDATE fleet SET sessions = 0")
        }
    }

    /// Adds a session, and brings the session into the given state.
    private func prepare(_ state: SessionState, in queue: TransferQueue, files: FilePath) async throws -> SessionID {
        func add(_ name: String, held: Bool = false) async throws -> SessionID {
            try await queue.add([try .upload([files.appending(name)], to: "studio")], held: held)[0]
        }
        func wait(_ id: SessionID, _ state: SessionState) async throws {
            while try await queue.status(of: id).state != state { await Task.yield() }
        }
        if state == .waiting { try await wait(try await add("wait"), .running) }
        let name = state == .failed ? "fail" : state == .completed ? "complete" : "wait"
        let id = try await add(name, held: state == .held || state == .cancelled)
        if state == .cancelled { try await queue.cancel(id) }
        if state == .paused {
            try await wait(id, .running)
            _ = try await queue.pause(id)
        }
        try await wait(id, state)
        return id
    }

    private func prepare(_ state: SessionState, in fleet: FleetFixture, _ member: FleetMemberDescription) async throws -> SessionID {
        func take() async throws -> FleetLease { try #require(try await fleet.store.take(for: member).first) }
        if state == .waiting {
            try await fleet.add(1)
            _ = try await take()
        }
        let id = try await fleet.add([FleetFixture.draft("target")], held: state == .held || state == .cancelled)[0]
        switch state {
        case .cancelled: try await fleet.fleet.cancel(id)
        case .running: _ = try await take()
        case .paused:
            _ = try await take()
            _ = try await fleet.fleet.pause(id)
        case .failed: #expect(try await fleet.finish(try await take(), error: TransferError(.permanent, .rejected, "no")))
        case .completed: #expect(try await fleet.finish(try await take()))
        default: break
        }
        #expect(try await fleet.state(of: id) == state)
        return id
    }
}
