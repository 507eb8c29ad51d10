import SystemPackage
import TransferCore
import TransferKit
import TransportTUS

// The code of the article "Accounts for tus", in the same order. ``ArticleTests`` verifies that both copies match.

// swift-format-ignore-file

private func save(queue: TransferQueue) async throws {
    // ARTICLE
    let endpoint = Endpoint.tus(
        "https://upload.example.com/files/", credentials: .bearer(.environment("STUDIO_TOKEN")),
        options: TUSOptions(chunkSize: 52_428_800, chunkMultiple: 262_144, requests: RequestOptions(headers: ["X-Studio": "north"])))
    try await queue.save(Account("studio", endpoints: [endpoint]))
    // END
    try TUSTransport.validate(endpoint)
}

private func enqueue(queue: TransferQueue) async throws {
    // ARTICLE
    var item = TransferItem("/srv/in/reel.mov")
    item.uploadURL = "https://upload.example.com/files/24e533e02ec3bc40c387f1a0e460e216"
    var options = SessionOptions(metadata: ["project": "north"], headers: ["X-Ticket": "7"])
    options.creation = .separate
    try await queue.enqueue(.upload(items: [item, TransferItem("/srv/in/notes.txt")], to: "studio", options: options))
    // END
}
