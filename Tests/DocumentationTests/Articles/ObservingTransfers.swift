import TransferCore
import TransferKit

// The code of the article "Observing transfers", in the same order. ``ArticleTests`` verifies that both copies match.

// swift-format-ignore-file

// ARTICLE
actor Journal: TransferQueueDelegate {
    private(set) var lines: [String] = []

    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) {
        switch event.kind {
        case .completed(let session): lines.append("\(session) arrived.")
        case .failed(let session, let error): lines.append("\(session) failed. \(error.message)")
        case .gap: lines.append("Events are missing. Read the queue again.")
        default: break
        }
    }

    func queue(_ queue: TransferQueue, needsCredentialsFor account: String, because error: TransferError) -> CredentialsDecision {
        lines.append("\(account) needs new credentials. \(error.message)")
        return .later
    }
}
// END

private func setDelegate(queue: TransferQueue) {
    // ARTICLE
    let journal = Journal()
    queue.setDelegate(journal)
    // END
}

// ARTICLE
actor Router: TransferQueueDelegate {
    private let preferredHost: String

    init(preferredHost: String) {
        self.preferredHost = preferredHost
    }

    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) {}

    func queue(_ queue: TransferQueue, endpointFor session: SessionID, among endpoints: [Endpoint]) -> Endpoint? {
        endpoints.first { $0.location.contains(preferredHost) }
    }
}
// END

private func followSession(reel: TransferSession) async {
    // ARTICLE
    for await event in reel.events {
        switch event {
        case .snapshot(let status): print("\(status.name) is \(status.state.rawValue).")
        case .event(let event): print(event.kind.name)
        case .ended(let end): print("Ended: \(end)")
        }
    }
    // END
}

private func followQueue(queue: TransferQueue) async {
    // ARTICLE
    for await event in queue.events {
        switch event.kind {
        case .progress(let id, let figures): print("\(id): \(figures.bytesSent) of \(figures.bytesKnown)")
        case .accountBlocked(let account, let error): print("\(account) is blocked. \(error.message)")
        case .gap: print("Events are missing. Read the queue again.")
        default: break
        }
    }
    // END
}

private func readFigures(queue: TransferQueue) async throws {
    // ARTICLE
    let figures = try await queue.statistics()
    print("\(figures.bytesDone) of \(figures.bytesTotal) bytes in \(figures.secondsElapsed) s")
    for session in try await queue.forecast() {
        guard let start = session.expectedStart else { continue }
        print("\(session.id) starts at \(start).")
    }
    // END
}

private func setNetwork(queue: TransferQueue) async throws {
    // ARTICLE
    try await queue.setNetworkCondition(.expensive)
    // END
}

private func resumeEvents(queue: TransferQueue) async {
    // ARTICLE
    var last = UInt64(0)  // read from the app's storage
    for await event in queue.events(since: last) {
        if case .gap = event.kind {
            print("The log no longer has all events. Read the queue again.")
        } else {
            print("\(event.time) \(event.kind.name)")
        }
        last = event.revision
    }
    // END
}

// ARTICLE
@MainActor protocol RowView: AnyObject {
    func insertRows(at indices: Range<Int>)
    func deleteRows(at indices: [Int])
    func moveRow(from index: Int, to newIndex: Int)
    func reloadRow(at index: Int)
    func reloadAll()
}
// END

// ARTICLE
@MainActor final class SessionTable {
    private(set) var list = QueueList(QueueOrder(sessions: [], revision: 0))
    private let view: any RowView

    init(view: any RowView) {
        self.view = view
    }

    /// Follows a queue until it is shut down.
    func follow(_ queue: TransferQueue) async {
        let events = queue.events
        await load(queue)
        for await event in events {
            switch list.apply(event.kind) {
            case .inserted(let indices): view.insertRows(at: indices)
            case .removed(let indices): view.deleteRows(at: indices)
            case .moved(let index, let newIndex): view.moveRow(from: index, to: newIndex)
            case .outdated: await load(queue)
            case nil:
                if let id = event.session, let index = list.order.sessions.firstIndex(of: id) { view.reloadRow(at: index) }
            }
        }
    }

    private func load(_ queue: TransferQueue) async {
        list = QueueList(await queue.order())
        view.reloadAll()
    }
}
// END

private func runRow(queue: TransferQueue, revision: UInt64) async throws {
    // ARTICLE
    try await queue.run(.at(3, expecting: revision))
    // END
}
