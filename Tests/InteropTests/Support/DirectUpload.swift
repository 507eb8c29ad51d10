import Foundation
import Locking
import Logging
import SystemPackage
import TransferCore
import TransportTUS

/// An upload by the tus transport alone, without a queue.
struct DirectUpload: Sendable {
    struct Passphrase: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret(ClientIdentity.passphrase) }
    }

    var transport: TUSTransport
    var endpoint: Endpoint
    var options = AttemptOptions()
    var allowance: @Sendable (Int) -> Allowance = { Allowance(bytes: $0) }
    private let checkpoints = Locked<[FilePath: Checkpoint]>([:])

    init(_ transport: TUSTransport, to address: String, settings: [String: String] = [:], _ options: AttemptOptions = AttemptOptions()) {
        self.transport = transport
        self.options = options
        endpoint = Endpoint(transport: .tus, address: address, settings: settings)
    }

    func checkpoint(of path: FilePath) -> Checkpoint? { checkpoints.withLock { $0[path] } }

    /// Performs one attempt, which resumes from the last checkpoint.
    ///
    /// - Parameter stream: The stream whose bytes the file contains; nil for an ordinary file.
    func run(_ path: FilePath, stream: UploadSource? = nil) async throws -> TransferReceipt {
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: endpoint,
            source: try stream ?? UploadSource(path: path, identity: SourceIdentity(ofFileAt: path)),
            remotePath: try RemotePath(path.lastComponent?.string ?? "file.bin"), checkpoint: checkpoints.withLock { $0[path] },
            options: options,
            credentials: Passphrase(), logger: Logger(label: "test"))
        return try await transport.perform(
            attempt,
            reporting: AttemptReporter(
                progress: { _, _ in }, checkpoint: { [checkpoints] checkpoint in checkpoints.withLock { $0[path] = checkpoint } },
                allowance: allowance))
    }

    /// Performs attempts until one succeeds. Throws the first error that is not transient, or the error of the 21st attempt.
    ///
    /// - Returns: The receipt, and the number of failed attempts.
    func complete(_ path: FilePath, stream: UploadSource? = nil) async throws -> (receipt: TransferReceipt, failures: Int) {
        var failures = 0
        while true {
            do {
                return (try await run(path, stream: stream), failures)
            } catch let error as TransferError where error.failureClass == .transient && failures < 20 {
                failures += 1
            }
        }
    }
}
