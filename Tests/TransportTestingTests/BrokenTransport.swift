import Foundation
import Locking
import SystemPackage
import TransferCore
import TransportTesting

/// A defect of uploads that the conformance suite must detect. ``BrokenTransport`` injects the defect.
enum UploadDefect: String, CaseIterable, Sendable, CustomStringConvertible {
    case altersContent = "alters a byte"
    case losesLastByte = "loses the last byte of large files"
    case liesInReceipt = "reports the wrong size in its receipt"
    case mixesUpFiles = "mixes up files sent concurrently"
    case changesNames = "changes names"
    case refusesNamesAsTransient = "rejects unusual names with a transient error"
    case startsOver = "restarts instead of resuming"
    case claimsTooMuch = "saves checkpoints ahead of the stored bytes"
    case decreasesProgress = "reports decreasing progress"
    case confirmsTooMuch = "reports sent bytes as confirmed"
    case leavesProgressOpen = "never reports the full size as progress"
    case ignoresAllowance = "ignores the rate limits"
    case ignoresCancellation = "ignores cancellation"
    case renamesCancellation = "does not throw CancellationError when cancelled"
    case ignoresIdentity = "does not check whether the source changed"
    case misjudgesMissingSource = "reports a missing source as transient"
    case misjudgesRefusal = "reports a refused connection as transient"
    case leaksSecrets = "includes a secret in its errors"
    case savesSecrets = "includes a secret in its checkpoints"

    var description: String { rawValue }

    var brokenPromises: [TransportPromise] {
        switch self {
        case .altersContent, .losesLastByte: [.contentArrivesIntact]
        case .liesInReceipt: [.receiptHasSize]
        case .mixesUpFiles: [.manyFilesArrive]
        case .changesNames, .refusesNamesAsTransient: [.unusualNamesAreSafe]
        case .startsOver: [.resumesAfterLostConnection, .resumesAfterCancellation]
        case .claimsTooMuch: [.checkpointIsAccurate]
        case .decreasesProgress: [.progressNeverDecreases]
        case .confirmsTooMuch: [.confirmedBytesAreStored]
        case .leavesProgressOpen: [.progressEndsAtSize]
        case .ignoresAllowance: [.rateLimitIsRespected]
        case .ignoresCancellation, .renamesCancellation: [.cancelledAttemptEnds]
        case .ignoresIdentity: [.changedSourceIsRejected, .changedSourceIsRejectedOnResume, .changeDuringAttemptIsDetected]
        case .misjudgesMissingSource: [.missingSourceThrowsSourceLost]
        case .misjudgesRefusal: [.refusedConnectionIsUnreachable]
        case .leaksSecrets, .savesSecrets: [.secretsDoNotLeak]
        }
    }
}

/// A `MemoryTransport` with one injected defect in its uploads.
struct BrokenTransport: Transport {
    let memory: MemoryTransport
    let defect: UploadDefect
    private let sent = Locked<[UploadSource]>([])

    var id: TransportID { memory.id }

    init(memory: MemoryTransport, defect: UploadDefect) {
        self.memory = memory
        self.defect = defect
    }

    func shutdown() async {}

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let broken = BrokenReporter(reporter: reporter, defect: defect, size: try attempt.source.size)
        do {
            var receipt = try await run(broken.attempt(try alter(attempt)), broken.asReporter(secret: try await secret(of: attempt)))
            if defect == .liesInReceipt { receipt.bytes += 1 }
            return receipt
        } catch is CancellationError where defect == .renamesCancellation {
            throw TransferError(.transient, .cancelled, "The transfer was cancelled.")
        } catch var error as TransferError {
            if defect == .leaksSecrets { error.cause = "Authorization: Bearer \(try await secret(of: attempt))" }
            if defect == .misjudgesMissingSource, error.failureClass == .sourceLost { error.failureClass = .transient }
            if defect == .misjudgesRefusal, error.failureClass == .unreachable { error.failureClass = .transient }
            throw error
        }
    }

    private func run(_ attempt: FileAttempt, _ reporter: AttemptReporter) async throws -> TransferReceipt {
        guard defect == .ignoresCancellation else { return try await memory.perform(attempt, reporting: reporter) }
        return try await Task { try await memory.perform(attempt, reporting: reporter) }.value
    }

    private func secret(of attempt: FileAttempt) async throws -> String {
        guard let reference = attempt.endpoint.credentials.first else { return "" }
        return try await attempt.credentials.secret(for: reference).reveal()
    }

    private func alter(_ attempt: FileAttempt) throws -> FileAttempt {
        let source = try attempt.source
        let size = source.size
        switch defect {
        case .altersContent where size > 0:
            return attempt.replacing(source: try copy(source) { $0[$0.count / 2] ^= 1 })
        case .losesLastByte where size > 1024 * 1024:
            return attempt.replacing(source: try copy(source) { $0.removeLast() })
        case .mixesUpFiles:
            let sources = sent.withLock { sources in
                sources.append(source)
                return sources
            }
            return attempt.replacing(source: sources.count.isMultiple(of: 10) ? sources[0] : source)
        case .changesNames:
            return attempt.replacing(path: try RemotePath(attempt.remotePath.description.replacing(" ", with: "_")))
        case .refusesNamesAsTransient where attempt.remotePath.bytes.contains(0x0A):
            throw TransferError(.transient, .unsafeName, "The name has a line break.")
        case .ignoresIdentity where FileManager.default.fileExists(atPath: source.path.string):
            // Sends a private copy, so the transport does not notice later changes to the original.
            return attempt.replacing(source: try copy(source) { _ in })
        default: return attempt
        }
    }

    private func copy(_ source: UploadSource, _ change: (inout Data) -> Void) throws -> UploadSource {
        var content = try Data(contentsOf: URL(filePath: source.path.string))
        change(&content)
        let path = FilePath(source.path.string + "-\(UUID().uuidString)")
        try content.write(to: URL(filePath: path.string))
        return UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))
    }
}
