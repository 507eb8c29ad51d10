// swift-format-ignore-file

import SystemPackage
import TransferCore
import TransferKit
import TransportHTTP
import TransportSFTP
import TransportTUS

// The code of the article "Choosing a transport", in the same order. ``ArticleTests`` verifies that both copies match.

private func saveAccounts(queue: TransferQueue) async throws {
    // ARTICLE
    let tus = Endpoint.tus("https://upload.example.com/files/", credentials: .bearer(.environment("STUDIO_TOKEN")))
    let sftp = Endpoint.sftp("sftp://ingest@files.example.com/in/", options: SFTPOptions(identities: ["/etc/studio/id_ed25519"]))
    let studio = Account("studio", endpoints: [tus, sftp], fallbackAfter: .seconds(30))
    try await queue.save(studio)
    // END

    // ARTICLE
    let mirror = Endpoint.http("https+get://mirror.example.com/files/")
    let routed = Account("routed", endpoints: [tus, sftp, mirror], rules: [
        EndpointRule(direction: .upload, minimumSize: 10_000_000_000, prefer: [sftp.address]),
        EndpointRule(direction: .download, prefer: [mirror.address]),
    ])
    try await queue.save(routed)
    // END
}

// ARTICLE
actor Chooser: TransferQueueDelegate {
    private var isInStudio = false

    func enterStudio() { isInStudio = true }

    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) {}

    func queue(_ queue: TransferQueue, endpointFor session: SessionID, among endpoints: [Endpoint]) -> Endpoint? {
        isInStudio ? endpoints.first { $0.transport == .sftp } : nil
    }
}
// END
