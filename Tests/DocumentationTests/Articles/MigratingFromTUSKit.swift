import Foundation
import SystemPackage
import TransferCore
import TransferKit
import TransportTUS

/// The code of the article "Migrating from TUSKit", in the same order. ``ArticleTests`` verifies that both copies match.
// swift-format-ignore
private func opening() async throws -> TransferQueue {
    // ARTICLE
    let queue = try await TransferQueue(storage: .folder("/var/lib/app/uploads"), transports: [TUSTransport()])
    try await queue.save(Account("main", endpoints: [.tus("https://tusd.example.com/files/", credentials: .bearer(.environment("TOKEN")))]))
    try await queue.start()
    // END
    return queue
}

// swift-format-ignore
// ARTICLE
enum Uploads {
    static let queue = Task {
        try await TransferQueue(storage: .application("com.example.uploader"), transports: [TUSTransport()])
    }
}
// END

// swift-format-ignore
private func configuring(_ queue: TransferQueue) async throws {
    // ARTICLE
    let chunked = Endpoint.tus("https://tusd.example.com/files/", options: TUSOptions(chunkSize: 500 * 1024))
    let inChunks = SessionOptions(chunkSize: 500 * 1024)
    // END
    print(inChunks)

    // ARTICLE
    let transport = TUSTransport()
    let report = try await transport.check(chunked, credentials: ReferencedCredentials())
    print("tus \(report.version ?? "") with \(report.features.joined(separator: ", "))")
    await transport.shutdown()
    // END

    // ARTICLE
    let watcher = UploadWatcher()
    queue.setDelegate(watcher)
    // END
}

// swift-format-ignore
// ARTICLE
final class UploadWatcher: TransferQueueDelegate {
    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) {
        switch event.kind {
        case .didActivate(let session): print("started \(session)")
        case .progress(let session, let figures): print("\(session): \(figures.bytesDone) of \(figures.bytesKnown)")
        case .itemCompleted(_, let position, let receipt): print("item \(position) is at \(receipt.remoteURL ?? "an unknown place")")
        case .completed(let session): print("finished \(session)")
        case .failed(let session, let error): print("failed \(session): \(error)")
        default: break
        }
    }
}
// END

// swift-format-ignore
private func migrating(_ queue: TransferQueue, tokens: any TokenSource, address: String) async throws {
    // ARTICLE
    let one = try await queue.enqueue(.upload(["/srv/in/a.mov"], to: "main"))
    let many = try await queue.enqueue(["/srv/in/b.mov", "/srv/in/c.mov"].map { try .upload([$0], to: "main") })
    let text = try await queue.enqueue(.upload(items: [.data(Data("I am some data".utf8), as: RemotePath("some.txt"))], to: "main"))
    let pages = try await queue.enqueue(
        [Data("1".utf8), Data("2".utf8)].enumerated().map { number, page in
            try .upload(items: [.data(page, as: RemotePath("page-\(number).txt"))], to: "main")
        })
    // END
    print(one.id, many.count, text.id, pages.count)

    // ARTICLE
    let project = SessionOptions(creationURL: "https://tusd.example.com/projects/7/files/")
    try await queue.enqueue(.upload(["/srv/in/h.mov"], to: "main", options: project))
    // END

    // ARTICLE
    try await queue.save(Account("archive", endpoints: [.tus("https://archive.example.com/files/", credentials: .bearer(.environment("TOKEN")))]))
    let kept = try await queue.enqueue(.upload(["/srv/in/e.mov"], to: "archive"))
    // END
    print(kept.id)

    // ARTICLE
    var prepared = TransferItem("/srv/in/f.mov")
    prepared.uploadURL = address
    let handed = try await queue.enqueue(.upload(items: [prepared], to: "main"))
    // END
    print(handed.id)

    // ARTICLE
    let ticket = try await queue.enqueue(.upload(["/srv/in/d.mov"], to: "main", context: Ticket(id: 7)))
    let again = try await ticket.status.context.map { try JSONDecoder().decode(Ticket.self, from: $0) }
    // END
    print(again as Any)

    // ARTICLE
    let remaining = await queue.remainingSessions()  // 0 when nothing more happens automatically
    let figures = try await queue.statistics()
    print("\(figures.files - figures.filesDone) files remain, \(figures.bytesDone) of \(figures.bytesTotal) bytes arrived")
    // END
    print(remaining)

    // ARTICLE
    for session in try await queue.sessions() where session.state == .failed {
        print("\(session.name): \(session.error?.description ?? "")")
    }
    try await queue.retry(text.id)         // resumes the remaining files; apply(.retry, to: .failed) retries all failed sessions
    try await queue.remove(one.id)         // deletes the session, and its incomplete upload from the server
    // END

    // ARTICLE
    for session in try await queue.sessions() {
        print("\(session.name) is \(session.state.rawValue).")
        for item in try await queue.items(of: session.id) {
            print("\(item.destination): \(item.bytesDone) of \(item.bytesTotal ?? 0) bytes")
        }
    }
    // END

    // ARTICLE
    try await queue.apply(.remove(), to: .completed)
    let forAWeek = QueueConfiguration(retention: .age(.seconds(7 * 24 * 3_600)))
    // END
    print(forAWeek)

    // ARTICLE
    let signed = TUSTransport { request, headers in
        var headers = headers
        let token = try await tokens.token(isFresh: request.reason == .rejected)
        headers["Authorization"] = "Bearer \(token)"
        return headers
    }
    // END
    print(signed.id)

    // ARTICLE
    let labelled = SessionOptions(headers: ["X-Tenant": "42"])
    try await queue.enqueue(.upload(["/srv/in/g.mov"], to: "main", options: labelled))
    // END

    // ARTICLE
    var options = SessionOptions()
    options.filesInFlight = 8
    options.retry = RetryPolicy(maximumAttempts: 3)
    try await queue.enqueue(.upload(["/srv/in/stills/"], to: "main", options: options))
    // END

    // ARTICLE
    try await queue.cancel(one.id)              // keeps the sent bytes for a retry
    try await queue.stop()                      // interrupts all sessions; start() continues them
    try await queue.apply(.remove(), to: .all)  // ends and deletes all sessions, like reset()
    // END
}

private struct Ticket: Codable {
    var id: Int
}

private protocol TokenSource: Sendable {
    func token(isFresh: Bool) async throws -> String
}
