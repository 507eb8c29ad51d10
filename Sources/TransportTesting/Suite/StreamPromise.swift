import TransferCore

/// A promise that every transport keeps that sends sources whose bytes arrive while they are sent; checked as a ``TransportPromise``.
public enum StreamPromise: String, CaseIterable, Sendable, CustomStringConvertible {
    case growingSourceArrives = "A source that grows only as its bytes are confirmed arrives intact"
    case resumesAfterCut = "A source that grows goes on from its last checkpoint after its connection broke"
    case failureOfSourceIsTold = "A source whose producer failed fails with that error, and is not taken for complete"
    case cancellationEnds = "A cancelled attempt ends that waits for its source to grow"

    /// The promise as a sentence.
    public var description: String { rawValue }

    /// Checks the promise against a transport; may be called from any executor.
    ///
    /// - Parameter deadline: How long one attempt may take before it counts as hanging. Generous: it is no measure of speed.
    /// - Throws: A ``PromiseViolation`` if the transport breaks the promise; what the fixture throws.
    public func verify(_ fixture: some TransportFixture, deadline: Duration = .seconds(180)) async throws {
        try await PromiseCheck.run(rawValue, fixture, deadline) { try await run($0) }
    }

    private func run(_ check: PromiseCheck<some TransportFixture>) async throws {
        switch self {
        case .growingSourceArrives: try await check.growingSourceArrives()
        case .resumesAfterCut: try await check.growingSourceResumes()
        case .failureOfSourceIsTold: try await check.failureOfSourceIsTold()
        case .cancellationEnds: try await check.cancellationOfWaitingEnds()
        }
    }
}
