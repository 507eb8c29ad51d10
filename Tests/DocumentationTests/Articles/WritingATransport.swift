import SystemPackage
import TransferCore
import TransferKit
import TransportTUS

// The code of the article "Writing a transport" that is not the sample's, in its order; ``ArticleTests`` holds them together.

// swift-format-ignore-file

private func fail() throws {
    // ARTICLE
    throw TransferError(.transient, .serverError, "The archive is being backed up; try again later.", retryAfter: .seconds(300))
    // END
}

private func register() async throws {
    // ARTICLE
    let queue = try await TransferQueue(storage: .folder("/var/lib/app/transfers"), transports: [FolderTransport(), TUSTransport()])
    let archive = Endpoint(transport: "folder", address: "folder://localhost/media/archive/")
    try await queue.save(Account("archive", endpoints: [archive, .tus("https://upload.example.com/files/")]))
    try await queue.enqueue(.upload(["/srv/in/reel.mov"], to: "archive"))
    try await queue.start()
    // END
}

/// Stands in for the sample's, which is a package of its own.
private struct FolderTransport: Transport {
    let id: TransportID = "folder"

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        throw TransferError(.unsupported, .unsupported, "This is no transport.")
    }

    func shutdown() async {}
}
