import Foundation
import TransferKit

/// Reads the events of a fleet for one consumer: the stored events, and the progress of running sessions.
actor FleetEventReader {
    private static let interval = Duration.seconds(1)
    private static let pageSize = 1_000

    private let store: FleetStore
    /// The last revision that was read. The events up to this revision were returned, are in ``pending``, or are covered by a gap.
    private var revision: UInt64
    private var pending: ArraySlice<QueueEvent> = []
    private var nextRead = ContinuousClock.now
    /// The last reported progress of the running sessions.
    private var statistics: [SessionID: SessionStatistics] = [:]

    init(_ store: FleetStore, since revision: UInt64) {
        self.store = store
        self.revision = revision
    }

    /// Waits for the next event.
    ///
    /// - Throws: ``/TransferKit/QueueError`` if the database can't be read, or `CancellationError`.
    func next() async throws -> QueueEvent {
        while pending.isEmpty {
            try await Task.sleep(until: nextRead, clock: .continuous)
            nextRead = .now + Self.interval
            try await read()
        }
        return pending.removeFirst()
    }

    private func read() async throws {
        let changes = try await store.changes(after: revision, limit: Self.pageSize)
        var found: [QueueEvent] = []
        if changes.end < revision {
            // The database was restored from a backup.
            found.append(gap(from: changes.end + 1, to: revision, at: changes.end))
            revision = changes.end
        }
        for event in changes.events {
            if event.revision - revision > 1 { found.append(gap(from: revision + 1, to: event.revision - 1, at: event.revision - 1)) }
            found.append(event)
            revision = event.revision
        }
        // The last events were removed, or this version can't read them.
        if changes.end > revision {
            found.append(gap(from: revision + 1, to: changes.end, at: changes.end))
            revision = changes.end
        }
        if let running = changes.running {
            for (id, figures) in running where statistics[id] != figures {
                found.append(QueueEvent(revision: revision, time: .now, kind: .progress(id, figures)))
            }
            statistics = running
        } else {
            // The query reached its limit, so the fleet may have stored more events.
            nextRead = .now
        }
        pending = found[...]
    }

    private func gap(from first: UInt64, to last: UInt64, at revision: UInt64) -> QueueEvent {
        QueueEvent(revision: revision, time: .now, kind: .gap(from: first, to: last))
    }
}
