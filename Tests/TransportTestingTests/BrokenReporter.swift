import Foundation
import TransferCore

/// A filter that falsifies a transport's reports, according to the injected defect.
struct BrokenReporter {
    let reporter: AttemptReporter
    let defect: UploadDefect
    let size: Int64

    func attempt(_ attempt: FileAttempt) -> FileAttempt {
        defect == .startsOver ? attempt.replacing(checkpoint: .some(nil)) : attempt
    }

    func asReporter(secret: String) -> AttemptReporter {
        let (reporter, defect, size) = (reporter, defect, size)
        return AttemptReporter(
            progress: { sent, confirmed in
                if defect == .leavesProgressOpen, confirmed == size { return }
                reporter.report(sent: sent, confirmed: defect == .confirmsTooMuch ? sent + 1 : confirmed)
                if defect == .decreasesProgress, sent > 0 { reporter.report(sent: sent - 1, confirmed: confirmed) }
            },
            checkpoint: { checkpoint in
                var checkpoint = checkpoint
                if defect == .claimsTooMuch { checkpoint.confirmed += 1 }
                if defect == .savesSecrets { checkpoint.data += Data(" \(secret)".utf8) }
                try await reporter.save(checkpoint)
            },
            allowance: { defect == .ignoresAllowance ? Allowance(bytes: $0) : reporter.allowance(upTo: $0) })
    }
}

extension FileAttempt {
    func replacing(source: UploadSource? = nil, path: RemotePath? = nil, checkpoint: Checkpoint?? = nil) -> FileAttempt {
        FileAttempt(
            transferID: transferID, number: number, endpoint: endpoint, payload: source.map { .upload($0) } ?? payload,
            remotePath: path ?? remotePath,
            checkpoint: checkpoint ?? self.checkpoint, options: options, credentials: credentials, logger: logger)
    }
}
