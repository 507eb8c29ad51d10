import Foundation
import Locking
import Logging
import SystemPackage
import TransferCore

/// A temporary folder for source files. Also creates the attempts that upload these files.
final class Workbench: Sendable {
    let folder: FilePath

    init() throws {
        folder = FilePath(FileManager.default.temporaryDirectory.path).appending("transport-testing-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: folder.string)
    }

    func source(_ content: Data) throws -> UploadSource {
        let path = folder.appending(UUID().uuidString)
        try content.write(to: URL(filePath: path.string))
        return UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))
    }

    func attempt(
        _ source: UploadSource, as name: String = "file", at endpoint: Endpoint, from checkpoint: Checkpoint? = nil, number: Int = 1
    ) throws -> FileAttempt {
        FileAttempt(
            transferID: "test", number: number, endpoint: endpoint, source: source, remotePath: try RemotePath(name),
            checkpoint: checkpoint,
            credentials: FixedCredentials(value: "not-so-secret"), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }
}

struct FixedCredentials: CredentialProvider {
    let value: String

    func secret(for reference: CredentialReference) async throws -> Secret { Secret(value) }
}

final class RecordingReporter: Sendable {
    private let saved = Locked<[Checkpoint]>([])
    private let reported = Locked<[(sent: Int64, confirmed: Int64)]>([])

    var checkpoints: [Checkpoint] { saved.withLock { $0 } }
    var progress: [(sent: Int64, confirmed: Int64)] { reported.withLock { $0 } }

    var reporter: AttemptReporter {
        AttemptReporter(
            progress: { [reported] sent, confirmed in reported.withLock { $0.append((sent: sent, confirmed: confirmed)) } },
            checkpoint: { [saved] checkpoint in saved.withLock { $0.append(checkpoint) } })
    }
}

func bytes(_ count: Int) -> Data {
    Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
}
