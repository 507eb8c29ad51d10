import Foundation
import Logging
import SystemPackage
import TransferCore
import TransportSFTP

extension SFTPConnector {
    /// Attempts to upload a new file as `/reel.mov`, over the connections of this connector. The part file is `/.tq-t-1.part`.
    ///
    /// - Parameters:
    ///   - size: The size of the file in bytes.
    ///   - settings: The settings of the endpoint.
    ///   - recorder: Records the reports of the attempt.
    /// - Returns: The error of the attempt; nil if it succeeded.
    /// - Throws: `CancellationError`.
    func upload(
        _ size: Int, from checkpoint: Checkpoint? = nil, overwrite: OverwritePolicy = .never, settings: [String: String] = [:],
        recording recorder: Recorder = Recorder()
    ) async throws -> TransferError? {
        let path = FilePath(FileManager.default.temporaryDirectory.appending(path: "sftp-upload-\(UUID().uuidString)").path)
        try content(size).write(to: URL(filePath: path.string))
        defer { try? FileManager.default.removeItem(atPath: path.string) }
        let transport = SFTPTransport(connector: self)
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: Endpoint(transport: .sftp, address: "sftp://me@peer/", settings: settings),
            source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)), remotePath: try RemotePath("reel.mov"),
            checkpoint: checkpoint, options: AttemptOptions(overwrite: overwrite), credentials: NoCredentials(),
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        var failure: (any Error)?
        do {
            _ = try await transport.perform(attempt, reporting: recorder.reporter)
        } catch {
            failure = error
        }
        await transport.shutdown()
        guard let failure else { return nil }
        guard let error = failure as? TransferError else { throw failure }
        return error
    }
}
