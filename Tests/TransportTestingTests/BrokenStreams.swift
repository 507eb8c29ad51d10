import Foundation
import SystemPackage
import TransferCore
import TransportTesting

/// A defect in the handling of growing sources that the conformance suite must detect. ``BrokenStreams`` injects the defect.
enum StreamDefect: String, CaseIterable, Sendable, CustomStringConvertible {
    case treatsStartAsComplete = "considers the first bytes the complete source"
    case waitsForAll = "waits until the source is complete"
    case startsOver = "resends the source from the start after the existing bytes"
    case hidesFailure = "considers a failed source complete"
    case ignoresCancellation = "ignores cancellation"

    var description: String { rawValue }

    var brokenPromises: [StreamPromise] {
        switch self {
        case .treatsStartAsComplete, .waitsForAll: [.growingSourceArrives]
        case .startsOver: [.resumesAfterLostConnection]
        case .hidesFailure: [.sourceFailureIsReported]
        case .ignoresCancellation: [.cancelledAttemptEnds]
        }
    }

    /// Whether an attempt with this defect never ends.
    var hangs: Bool { self == .waitsForAll || self == .ignoresCancellation }
}

/// A `MemoryTransport` with one injected defect in its handling of growing sources.
struct BrokenStreams: Transport {
    let memory: MemoryTransport
    let defect: StreamDefect

    var id: TransportID { memory.id }

    func shutdown() async {}

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let source = try attempt.source
        guard let growth = source.growth else { return try await memory.perform(attempt, reporting: reporter) }
        switch defect {
        case .treatsStartAsComplete:
            let first: Int64 = if case .growing(let size) = growth.extent { size } else { 0 }
            return try await memory.perform(attempt.replacing(source: whole(source, first)), reporting: reporter)
        case .waitsForAll:
            try await growth.waitUntilReadable(at: .max)
            return try await memory.perform(attempt, reporting: reporter)
        case .startsOver:
            guard let checkpoint = attempt.checkpoint else { return try await memory.perform(attempt, reporting: reporter) }
            // Sends the whole source after the existing bytes.
            let content = try Data(contentsOf: URL(filePath: source.path.string))
            let path = FilePath(source.path.string + "-shifted")
            try (content.prefix(Int(checkpoint.confirmed)) + content).write(to: URL(filePath: path.string))
            let shifted = UploadSource(path: path, identity: source.identity, growth: growth)
            return try await memory.perform(attempt.replacing(source: shifted), reporting: reporter)
        case .hidesFailure:
            do {
                return try await memory.perform(attempt, reporting: reporter)
            } catch let error as TransferError where error.code == .producerGone {
                return TransferReceipt(bytes: 0)
            }
        case .ignoresCancellation:
            return try await Task { try await memory.perform(attempt, reporting: reporter) }.value
        }
    }

    private func whole(_ source: UploadSource, _ size: Int64) -> UploadSource {
        let growth = SourceGrowth(.complete(size)) { source.growth?.confirmed(before: $0) }
        return UploadSource(path: source.path, identity: source.identity, growth: growth)
    }
}
