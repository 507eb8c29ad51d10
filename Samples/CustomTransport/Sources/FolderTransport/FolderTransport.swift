package import Foundation
import SystemPackage
public import TransferCore
import TransportSupport

/// Moves files to and from a folder of this machine, such as that of an attached drive: `folder://localhost/media/archive/`.
///
/// An upload goes into a part beside its name, which gets the name as a whole when all bytes are synced. Links below the folder are not
/// followed on the way there.
public struct FolderTransport: Transport {
    /// `folder`
    public let id: TransportID = "folder"

    let threads = WorkerThreads(limit: 4)
    let drive: @Sendable (Data) throws -> Data

    /// Makes a transport. Its threads come with the first attempt, and go with the last reference.
    public init() {
        self.init { $0 }
    }

    /// - Parameter drive: What each piece of a file goes through; tests break it there.
    package init(drive: @escaping @Sendable (Data) throws -> Data) {
        self.drive = drive
    }

    /// Copies one file. Called by the queue, on a task of its own.
    ///
    /// - Throws: A `TransferError`, after a checkpoint was saved for what arrived; or `CancellationError`.
    public func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        guard attempt.options.verification != .checksum, attempt.options.expectedChecksum == nil else {
            throw TransferError(.unsupported, .unsupported, "The folder transport compares sizes, and no checksums.")
        }
        let folder = try await open(attempt.endpoint)
        switch attempt.payload {
        case .upload(let source): return try await upload(source, attempt, to: folder, reporter)
        case .download(let destination): return try await download(to: destination, attempt, from: folder, reporter)
        }
    }

    /// Does nothing: there are no connections.
    public func shutdown() async {}

    /// Makes sure that an endpoint's folder is there. One whose drive is not attached can't be reached, and the account's next one may.
    func open(_ endpoint: Endpoint) async throws -> FilePath {
        let url = try endpoint.validate()
        guard url.scheme == "folder", url.host() == "localhost", url.query() == nil else {
            throw TransferError(
                .permanent, .invalidEndpoint, "\(endpoint.location) names no folder; write it as folder://localhost/path/to/folder/.")
        }
        let folder = FilePath("/" + url.path(percentEncoded: false))
        return try await threads.run {
            do {
                try FileDescriptor.open(folder, .readOnly, options: [.directory, .closeOnExec]).close()
                return folder
            } catch {
                throw TransferError(
                    .unreachable, .connectionRefused, "The folder \(folder) can't be opened; attach its drive.", cause: "\(error)")
            }
        }
    }
}

extension FilePath {
    /// Where a file is, for a receipt.
    var folderURL: String { "folder://localhost" + URL(filePath: string).path() }
}
