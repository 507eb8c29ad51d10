import TransferCore
package import TransferKit

/// A session that a member has taken, with everything that the member needs to run it.
package struct FleetLease: Sendable {
    /// The duration of a lease, from its start or its last renewal.
    package static let duration = Duration.seconds(15)
    /// The time before the end of a lease at which a member stops the session if it could not renew the lease.
    package static let safetyMargin = Duration.seconds(5)
    /// The lease's duration as an SQL expression.
    package static let interval = "interval '15 s'"

    package var id: SessionID
    /// The number of the lease, which grows each time a member takes the session. The member includes this number in every change, so that
    /// the fleet rejects changes by a former member.
    package var epoch: Int64
    package var draft: SessionDraft
    package var account: Account
    /// Whether the member's queue must run the session now, because `run` or `retry` was called before the member took the session.
    package var mustRun = false
    /// See ``HeartbeatResponse/retries``.
    package var retries: Int64 = 0
    /// The member's shares of the rate limits after the member took the session.
    package var rates = RateShares()

    package var reference: LeaseReference { LeaseReference(id: id, epoch: epoch) }
}

/// Identifies a lease in the changes of its owner.
package struct LeaseReference: Hashable, Sendable {
    package var id: SessionID
    package var epoch: Int64

    package init(id: SessionID, epoch: Int64) {
        self.id = id
        self.epoch = epoch
    }
}

/// The fleet's request to the owner of a lease.
package enum LeaseRequest: Sendable, Equatable {
    /// Run the session, or resume the session if it is paused.
    case run
    /// Pause the session.
    case pause
    /// Stop the session, and give it back.
    case giveBack
}

/// The fleet's response to a heartbeat (``FleetStore/renew(_:of:)``).
package struct HeartbeatResponse: Sendable {
    /// The request to the owner of each lease that is still valid, by session. A lease that is missing here has ended.
    package var requests: [SessionID: LeaseRequest] = [:]
    /// The number of calls of `run` since the member took the session, for each lease that is still valid.
    package var runRequests: [SessionID: Int64] = [:]
    /// The number of requests to try the endpoints of an account again, for each account of these leases. The number grows with each request.
    package var retries: [String: Int64] = [:]
    /// The member's shares of the rate limits; empty if no lease was renewed.
    package var rates = RateShares()
}

extension FileEvent {
    /// The name under which the event is stored, and the file's generation: a number that grows with each restart of the file, or 0 for the end
    /// of the file. A later event with the same name replaces an earlier event of the same file. Nil if the event is not stored.
    var storageKey: (name: String, generation: Int64)? {
        switch self {
        case .restarted(let generation, _): ("0restart", generation)
        case .checkpoint(_, let endpoint, let generation, _): ("checkpoint \(endpoint.address)", generation)
        case .completed, .failed: ("end", 0)
        case .record(_, let generation): ("record", generation)
        case .size, .foundFolder: nil
        }
    }
}

extension FileProgress {
    /// The progress with which the next owner of the session begins; nil if the event is irrelevant to the next owner. If the earlier
    /// owner may have delivered the file, and the file must not be sent twice, the result is the failure `outcomeUnknown`.
    fileprivate var adopted: FileProgress? {
        guard case .record(let isPossible, _) = event else { return self }
        guard isPossible else { return nil }
        return FileProgress(position: position, event: .failed(.outcomeUnknown))
    }
}

extension FleetTransaction {
    /// The progress with which the next owner of a session begins.
    func adoptedProgress(of id: SessionID) throws -> [FileProgress] { try progress(of: id).compactMap(\.adopted) }

    /// The progress that earlier owners recorded, in an order in which a queue can apply it.
    package func progress(of id: SessionID) throws -> [FileProgress] {
        let rows = try link.query(
            "SELECT position, part, generation, event FROM progress WHERE session = $1 ORDER BY position, part COLLATE \"C\"", ["\(id)"])
        var files: [(position: Int64, events: [(generation: Int64, event: FileEvent)])] = []
        for row in rows {
            let (position, generation) = (try row.integer(0), try row.integer(2))
            if files.last?.position != position { files.append((position, [])) }
            files[files.count - 1].events.append((generation, try row.json(FileEvent.self, 3)))
        }
        return files.flatMap { file in
            Self.applicable(file.events).map { FileProgress(position: file.position, event: $0) }
        }
    }

    /// Returns the events of one file that a queue can apply: the last restart, and the events after this restart. For a failed file, returns
    /// only the failure; for a completed file, only the size and the completion.
    private static func applicable(_ events: [(generation: Int64, event: FileEvent)]) -> [FileEvent] {
        var result: [FileEvent] = []
        var generation: Int64 = 1
        for (eventGeneration, event) in events {
            switch event {
            case .restarted(let number, _):
                generation = number
                result.append(event)
            case .checkpoint where eventGeneration == generation: result.append(event)
            case .record where eventGeneration == generation: result.append(event)
            // The size of a download is unknown when the download is enqueued.
            case .completed(let receipt, _): return [.size(receipt.bytes), event]
            case .failed: return [event]
            case .checkpoint, .record, .size, .foundFolder: break
            }
        }
        return result
    }
}
