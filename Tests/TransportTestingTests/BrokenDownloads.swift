import Foundation
import Locking
import SystemPackage
import TransferCore
import TransportTesting

/// A defect of downloads that the conformance suite must detect. ``BrokenDownloads`` injects the defect.
enum DownloadDefect: String, CaseIterable, Sendable, CustomStringConvertible {
    case altersContent = "alters a byte"
    case namesEarly = "gives the file its final name at the start"
    case liesInReceipt = "reports the wrong size in its receipt"
    case reportsWrongTotal = "reports the wrong total size"
    case misjudgesMissingFile = "reports a missing file as transient"
    case startsOver = "restarts instead of resuming"
    case claimsTooMuch = "saves checkpoints ahead of the written bytes"
    case claimsNothing = "saves only checkpoints without confirmed bytes"
    case continuesAnyFile = "resumes although the remote file changed"
    case misjudgesLostPartFile = "reports a lost part file as transient"
    case decreasesProgress = "reports decreasing progress"
    case leavesProgressOpen = "never reports the full size as progress"
    case ignoresAllowance = "ignores the rate limits"
    case ignoresCancellation = "ignores cancellation"
    case renamesCancellation = "does not throw CancellationError when cancelled"
    case replacesAlways = "replaces existing files"
    case replacesNever = "never replaces files"
    case followsLinks = "follows links"
    case misjudgesRefusal = "reports a refused connection as transient"
    case opensEarly = "creates the part file before it connects"

    var description: String { rawValue }

    var brokenPromises: [DownloadPromise] {
        switch self {
        case .altersContent: [.contentArrivesIntact]
        case .namesEarly: [.nameComesLast]
        case .liesInReceipt: [.receiptHasSize]
        case .reportsWrongTotal: [.reportedSizeIsCorrect]
        case .misjudgesMissingFile: [.missingFileIsPermanent]
        case .startsOver: [.resumesAfterLostConnection, .resumesAfterCancellation]
        case .claimsTooMuch: [.checkpointIsAccurate]
        case .claimsNothing, .continuesAnyFile: [.changedFileIsNotResumed]
        case .misjudgesLostPartFile: [.lostPartFileIsNotResumed]
        case .decreasesProgress: [.progressNeverDecreases]
        case .leavesProgressOpen: [.progressEndsAtSize]
        case .ignoresAllowance: [.rateLimitIsRespected]
        case .ignoresCancellation, .renamesCancellation: [.cancelledAttemptEnds]
        case .replacesAlways: [.existingFileIsKeptByDefault]
        case .replacesNever: [.replacesIfConfigured]
        case .followsLinks: [.staysInFolder]
        case .misjudgesRefusal, .opensEarly: [.refusedConnectionIsUnreachable]
        }
    }
}

/// A `MemoryTransport` with one injected defect in its downloads.
struct BrokenDownloads: Transport {
    let memory: MemoryTransport
    let defect: DownloadDefect

    var id: TransportID { memory.id }

    func shutdown() async {}

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let destination = try attempt.destination
        if defect == .opensEarly { try Data().write(to: URL(filePath: destination.partPath.string)) }
        if defect == .namesEarly { try Data().write(to: URL(filePath: destination.path.string)) }
        do {
            var receipt = try await run(alter(attempt, destination), self.reporter(around: reporter))
            if defect == .liesInReceipt { receipt.bytes += 1 }
            if defect == .altersContent, receipt.bytes > 0 {
                var content = try Data(contentsOf: URL(filePath: destination.path.string))
                content[content.count / 2] ^= 1
                try content.write(to: URL(filePath: destination.path.string))
            }
            return receipt
        } catch is CancellationError where defect == .renamesCancellation {
            throw TransferError(.transient, .cancelled, "The transfer was cancelled.")
        } catch let error as TransferError {
            return try await recover(from: error, attempt, destination, reporter)
        }
    }

    private func run(_ attempt: FileAttempt, _ reporter: AttemptReporter) async throws -> TransferReceipt {
        guard defect == .ignoresCancellation else { return try await memory.perform(attempt, reporting: reporter) }
        return try await Task { try await memory.perform(attempt, reporting: reporter) }.value
    }

    private func recover(
        from error: TransferError, _ attempt: FileAttempt, _ destination: DownloadDestination, _ reporter: AttemptReporter
    ) async throws -> TransferReceipt {
        var error = error
        switch defect {
        case .continuesAnyFile where error.failureClass == .resumeLost:
            return try await memory.perform(attempt.replacing(checkpoint: .some(nil)), reporting: reporter)
        case .followsLinks where error.code == .unsafeName:
            let content = memory.partialContents(of: attempt.remotePath.description) ?? Data("anything".utf8)
            try content.write(to: URL(filePath: destination.path.string))
        case .misjudgesMissingFile where error.code == .noSuchRemoteFile, .misjudgesLostPartFile where error.failureClass == .resumeLost,
            .misjudgesRefusal where error.failureClass == .unreachable:
            error.failureClass = .transient
        default: break
        }
        throw error
    }

    private func alter(_ attempt: FileAttempt, _ destination: DownloadDestination) -> FileAttempt {
        let policy: OverwritePolicy =
            switch defect {
            case .replacesAlways, .namesEarly: .always
            case .replacesNever: .never
            default: destination.overwrite
            }
        let payload = FileAttempt.Payload.download(
            DownloadDestination(root: destination.root, name: destination.name, partName: destination.partName, overwrite: policy))
        return FileAttempt(
            transferID: attempt.transferID, number: attempt.number, endpoint: attempt.endpoint, payload: payload,
            remotePath: attempt.remotePath, checkpoint: defect == .startsOver ? nil : attempt.checkpoint, options: attempt.options,
            credentials: attempt.credentials, logger: attempt.logger)
    }

    private func reporter(around reporter: AttemptReporter) -> AttemptReporter {
        let (defect, size) = (defect, Locked<Int64?>(nil))
        return AttemptReporter(
            progress: { sent, confirmed in
                if defect == .leavesProgressOpen, confirmed == size.withLock({ $0 }) { return }
                reporter.report(sent: sent, confirmed: confirmed)
                if defect == .decreasesProgress, sent > 0 { reporter.report(sent: sent - 1, confirmed: confirmed) }
            },
            checkpoint: { checkpoint in
                var checkpoint = checkpoint
                if defect == .claimsTooMuch { checkpoint.confirmed += 1 }
                if defect == .claimsNothing { checkpoint.confirmed = 0 }
                try await reporter.save(checkpoint)
            },
            allowance: { defect == .ignoresAllowance ? Allowance(bytes: $0) : reporter.allowance(upTo: $0) },
            total: { total in
                size.withLock { $0 = total }
                reporter.report(total: defect == .reportsWrongTotal ? total + 1 : total)
            })
    }
}
