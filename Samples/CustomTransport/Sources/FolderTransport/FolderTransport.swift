package import Foundation
import SystemPackage
public import TransferCore
import TransportSupport

/// Copies files to and from a local folder, such as one on an attached drive: `folder://localhost/media/archive/`.
///
/// An upload first goes to a part file in the folder of the final file. The part file gets the final name once all bytes are synced to the disk. The
/// transport does not follow links below the endpoint's folder.
public struct FolderTransport: Transport, EndpointValidating, EndpointChecking, SessionValidating, FileNaming {
    /// The ID `folder`.
    public let id: TransportID = "folder"

    let threads = WorkerThreads(limit: 4)
    let drive: @Sendable (Data) throws -> Data

    /// Creates a transport. Its threads start with the first attempt, and end when the last reference to the transport is released.
    public init() {
        self.init { $0 }
    }

    /// - Parameter drive: Processes each block of a file. Tests use this closure to inject failures.
    package init(drive: @escaping @Sendable (Data) throws -> Data) {
        self.drive = drive
    }

    /// Copies one file. Called by the queue, on a separate task for each file.
    ///
    /// - Throws: A `TransferError`, after saving a checkpoint for the bytes that arrived; or `CancellationError`.
    public func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try Self.validate(attempt.options)
        let folder = try await open(attempt.endpoint)
        switch attempt.payload {
        case .upload(let source): return try await upload(source, attempt, to: folder, reporter)
        case .form: throw TransferError(.unsupported, .unsupported, "A folder can't receive forms.")
        case .download(let destination): return try await download(to: destination, attempt, from: folder, reporter)
        }
    }

    /// Does nothing: there are no connections.
    public func shutdown() async {}

    /// Checks that an endpoint's folder can be opened, and returns the folder's path. If the drive is not attached, the endpoint is unreachable,
    /// and the queue tries the account's next endpoint.
    func open(_ endpoint: Endpoint) async throws -> FilePath {
        let folder = try Self.folder(of: endpoint)
        return try await threads.run {
            do {
                try FileDescriptor.open(folder, .readOnly, options: [.directory, .closeOnExec]).close()
                return folder
            } catch {
                throw TransferError(
                    .unreachable, .connectionRefused, "Cannot open the folder \(folder). Attach its drive.", cause: "\(error)")
            }
        }
    }
}

extension FilePath {
    /// The URL of a file, for a receipt.
    var folderURL: String { "folder://localhost" + URL(filePath: string).path() }
}
