import TransferCore

/// A promise that every transport for growing sources must keep. Check the promise as shown in ``TransportPromise``.
public enum StreamPromise: String, CaseIterable, Sendable, CustomStringConvertible {
    /// A source that grows only after its earlier bytes are confirmed arrives intact.
    case growingSourceArrives = "A source that grows only after its earlier bytes are confirmed arrives intact"
    /// The upload of a growing source resumes from its last checkpoint after a broken connection.
    case resumesAfterLostConnection = "The upload of a growing source resumes from its last checkpoint after a broken connection"
    /// If the producer fails, the attempt throws the producer's error, and the file is not complete.
    case sourceFailureIsReported = "If the producer fails, the attempt throws the producer's error, and the file is not complete"
    /// Cancelling an attempt that waits for its source ends the attempt.
    case cancelledAttemptEnds = "Cancelling an attempt that waits for its source ends the attempt"

    /// The promise, as a sentence.
    public var description: String { rawValue }

    /// Checks the promise for a transport. Call this method from any executor.
    ///
    /// - Parameters:
    ///   - fixture: Connects the check to a server.
    ///   - deadline: The time after which the suite considers an attempt hung; not a performance threshold.
    /// - Throws: A ``PromiseViolation`` if the transport breaks the promise, or an error from the fixture.
    public func verify(_ fixture: some TransportFixture, deadline: Duration = .seconds(180)) async throws {
        try await PromiseCheck.run(rawValue, fixture, deadline) { try await run($0) }
    }

    private func run(_ check: PromiseCheck<some TransportFixture>) async throws {
        switch self {
        case .growingSourceArrives: try await check.growingSourceArrives()
        case .resumesAfterLostConnection: try await check.growingSourceResumes()
        case .sourceFailureIsReported: try await check.sourceFailureIsReported()
        case .cancelledAttemptEnds: try await check.cancellationOfWaitingEnds()
        }
    }
}
