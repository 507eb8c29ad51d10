import SystemPackage
import TransferCore
import TransferKit
import TransportTUS

// The code of the article "Writing a transport" that is not in the sample, in the same order. ``ArticleTests`` verifies that both copies
// match.

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

/// Replaces the sample's transport, which is in a separate package.
private struct FolderTransport: Transport {
    let id: TransportID = "folder"

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        throw TransferError(.unsupported, .unsupported, "This transport is not implemented.")
    }

    func shutdown() async {}
}
