import Foundation
import Logging
import SystemPackage
import TransferCore

/// Checks one promise of a transport.
struct PromiseCheck<Fixture: TransportFixture>: Sendable {
    let promise: String
    let fixture: Fixture
    /// The time after which the check considers an attempt hung.
    let deadline: Duration

    /// A file size in bytes that exceeds the buffers of a transport, so that checks can stop an attempt half-way.
    static var largeSize: Int { 3 * 1024 * 1024 + 7 }

    static var logger: Logger { Logger(label: "transport-testing") { _ in SwiftLogNoOpLogHandler() } }

    func violation(_ observation: String) -> PromiseViolation {
        PromiseViolation(promise: promise, observation: observation)
    }

    static func run(
        _ promise: String, _ fixture: Fixture, _ deadline: Duration, _ body: (PromiseCheck) async throws -> Void
    ) async throws {
        let check = PromiseCheck(promise: promise, fixture: fixture, deadline: deadline)
        do {
            try await body(check)
        } catch let error as TransferError {
            throw check.violation("An attempt failed unexpectedly, with the class \(error.failureClass): \(error)")
        }
    }

    func require(_ condition: Bool, _ observation: @autoclosure () -> String) throws {
        guard condition else { throw violation(observation()) }
    }

    /// Creates a file to upload.
    ///
    /// - Parameter seed: Files with different seeds differ in most bytes.
    func makeSource(_ size: Int, seed: UInt64 = 1) throws -> (source: UploadSource, content: Data) {
        let content = Self.content(size, seed: seed)
        let path = fixture.folder.appending(UUID().uuidString)
        try content.write(to: URL(filePath: path.string))
        return (UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)), content)
    }

    func makePath(_ name: String = UUID().uuidString) throws -> RemotePath { try RemotePath(name) }

    /// Runs one attempt.
    ///
    /// - Throws: The error of the transport; a violation if the attempt does not end before the deadline.
    @discardableResult
    func send(
        _ source: UploadSource, as path: RemotePath, at endpoint: Endpoint? = nil, from checkpoint: Checkpoint? = nil,
        _ recorder: AttemptRecorder = AttemptRecorder()
    ) async throws -> TransferReceipt {
        try await start(source, as: path, at: endpoint, from: checkpoint, recorder).value(within: deadline, of: self)
    }

    func start(
        _ source: UploadSource, as path: RemotePath, at endpoint: Endpoint? = nil, from checkpoint: Checkpoint? = nil,
        _ recorder: AttemptRecorder
    ) -> RunningAttempt {
        let attempt = FileAttempt(
            transferID: "conformance-\(path.bytes.reduce(UInt64(5381)) { $0 &* 33 &+ UInt64($1) })", number: checkpoint == nil ? 1 : 2,
            endpoint: endpoint ?? fixture.endpoint, source: source, remotePath: path, checkpoint: checkpoint,
            options: fixture.options, credentials: fixture.credentials, logger: Self.logger)
        let transport = fixture.transport
        return RunningAttempt(task: Task { try await transport.perform(attempt, reporting: recorder.reporter) })
    }

    /// Runs an attempt that must fail with a `TransferError`, and returns the error.
    ///
    /// - Throws: A violation if the attempt returns a receipt or throws an error of another type.
    func failure(_ situation: String, _ body: () async throws -> TransferReceipt) async throws -> TransferError {
        do {
            _ = try await body()
        } catch {
            return try transferError(error, situation)
        }
        throw violation("\(situation), the attempt returned a receipt.")
    }

    /// Returns the error of an attempt as a `TransferError`.
    ///
    /// - Throws: A violation if the attempt threw an error of another type.
    @discardableResult
    func transferError(_ error: any Error, _ situation: String) throws -> TransferError {
        if let error = error as? TransferError { return error }
        // The attempt did not end in time, or the test was cancelled.
        if error is PromiseViolation || Task.isCancelled { throw error }
        throw violation("\(situation), the attempt threw \(type(of: error)) instead of a TransferError: \(error)")
    }

    func expect(_ failureClass: FailureClass, _ situation: String, _ body: () async throws -> TransferReceipt) async throws {
        let error = try await failure(situation, body)
        try require(error.failureClass == failureClass, "\(situation), the error is of class \(error.failureClass): \(error)")
    }

    func requireArrived(_ content: Data, as path: RemotePath, _ situation: String) async throws {
        let stored = try await fixture.storedContent(of: path)
        try require(stored?.count == content.count, "\(situation), the other end has \(stored?.count ?? 0) of \(content.count) bytes.")
        if let stored, stored != content {
            let difference = zip(content, stored).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? 0
            throw violation("\(situation), the byte at \(difference) differs.")
        }
        try require(try await fixture.isComplete(path), "\(situation), the other end does not consider the file complete.")
    }

    static func content(_ size: Int, seed: UInt64) -> Data {
        var words = [UInt64](repeating: 0, count: (size + 7) / 8)
        var state = seed &* 0x9E37_79B9_7F4A_7C15
        for index in words.indices {
            // A linear congruential generator with Knuth's constants: its values do not repeat, so the checks detect misplaced bytes.
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            words[index] = state
        }
        return unsafe words.withUnsafeBytes { unsafe Data($0.prefix(size)) }
    }
}
