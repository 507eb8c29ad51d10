import Foundation
import Locking
import SystemPackage
import TransferCore
import TransportTesting

/// The defects of transports in uploads.
enum Defect: String, CaseIterable, Sendable, CustomStringConvertible {
    case altersContent = "alters a byte"
    case losesLastByte = "loses the last byte of large files"
    case liesInReceipt = "says a wrong size in its receipt"
    case mixesUpFiles = "mixes up files that are sent at once"
    case changesNames = "changes names"
    case refusesNamesAsTransient = "refuses odd names with an error that is tried again"
    case startsOver = "starts over instead of resuming"
    case claimsTooMuch = "saves checkpoints ahead of what is stored"
    case decreasesProgress = "reports decreasing progress"
    case confirmsTooMuch = "reports what it sent as confirmed"
    case leavesProgressOpen = "does not report the end"
    case ignoresAllowance = "asks for no allowance"
    case ignoresCancellation = "ignores cancellation"
    case renamesCancellation = "throws another error when it is cancelled"
    case ignoresIdentity = "does not look whether the source changed"
    case misjudgesMissingSource = "takes a missing source for a passing fault"
    case misjudgesRefusal = "takes a refused connection for a passing fault"
    case leaksSecrets = "puts a secret into its errors"
    case savesSecrets = "puts a secret into its checkpoints"

    var description: String { rawValue }

    var brokenPromises: [TransportPromise] {
        switch self {
        case .altersContent, .losesLastByte: [.contentArrivesIntact]
        case .liesInReceipt: [.receiptHasSize]
        case .mixesUpFiles: [.manyFilesArrive]
        case .changesNames, .refusesNamesAsTransient: [.oddNamesAreSafe]
        case .startsOver: [.resumesAfterCut, .resumesAfterCancellation]
        case .claimsTooMuch: [.checkpointIsTrue]
        case .decreasesProgress: [.progressNeverDecreases]
        case .confirmsTooMuch: [.confirmedIsTrue]
        case .leavesProgressOpen: [.progressEndsAtSize]
        case .ignoresAllowance: [.allowanceIsKept]
        case .ignoresCancellation, .renamesCancellation: [.cancellationEnds]
        case .ignoresIdentity: [.changedSourceIsRefused, .changedSourceIsNotResumed, .changeDuringAttemptIsNoticed]
        case .misjudgesMissingSource: [.missingSourceIsLost]
        case .misjudgesRefusal: [.refusedConnectionIsUnreachable]
        case .leaksSecrets, .savesSecrets: [.secretsAreKept]
        }
    }
}

/// A correct transport with one defect.
struct BrokenTransport: Transport {
    let memory: MemoryTransport
    let defect: Defect
    private let sent = Locked<[UploadSource]>([])

    var id: TransportID { memory.id }

    init(memory: MemoryTransport, defect: Defect) {
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
            throw TransferError(.transient, .cancelled, "It was cancelled.")
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
            // A copy from the start does not change, either.
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
