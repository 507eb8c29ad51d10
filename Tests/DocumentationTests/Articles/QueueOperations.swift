// swift-format-ignore-file

import TransferKit

// The code of the article "Operations", in the same order. ``ArticleTests`` verifies that both copies match.

private func deduplicate(_ queue: TransferQueue) async throws {
    // ARTICLE
    var request = try SessionRequest.upload(["/srv/in/reel.mov"], to: "studio")
    request.deduplicationKey = "reel.mov, version 3"
    request.deduplicatesCompleted = true
    let session = try await queue.enqueue(request)  // the new session, or the one that has the key
    // END
    _ = session
}
