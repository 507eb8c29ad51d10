import Foundation
import Locking
import SystemPackage
import TransferCore

/// The streams of a queue's sessions, by the names of their files in the ``Spool``. Includes the streams that earlier processes left.
package final class StreamRegistry: Sendable {
    private struct Entry: Sendable {
        let session: SessionID
        let spool: StreamSpool
        /// The remote name; nil for a stream of this process.
        var destination: RemotePath?
    }

    private let entries = Locked<[Data: Entry]>([:])

    package init() {}

    /// Adds the streams that earlier processes left.
    func add(_ storedStreams: [StoredStream], in spool: Spool, clock: EngineClock) {
        for stream in storedStreams {
            guard let path = spool.path(of: stream.name) else { continue }
            let entry = Entry(session: stream.session, spool: StreamSpool(stream, at: path, clock: clock), destination: stream.destination)
            entries.withLock { $0[stream.name] = entry }
        }
    }

    /// Returns the streams whose producer belonged to an earlier process, and which another producer must continue.
    func unfinished() -> [UnfinishedStream] {
        entries.withLock { entries in
            entries.compactMap { name, entry in
                entry.spool.continuationOffset.flatMap { offset in
                    entry.destination.map { UnfinishedStream(session: entry.session, destination: $0, offset: offset, name: name) }
                }
            }
        }
    }

    func find(_ name: Data) -> StreamSpool? {
        entries.withLock { $0[name]?.spool }
    }

    /// Adds the streams of items that will be stored.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest` if one of the streams is already in a queue. After an error, no stream is added.
    func add(
        _ items: [TransferItem], _ drafts: [ItemDraft], of session: SessionID, in spool: Spool, clock: EngineClock
    ) throws(QueueError) {
        var added: [ItemDraft] = []
        for (item, draft) in zip(items, drafts) {
            guard case .stream(let producer) = item.content else { continue }
            guard producer.claim() else {
                removeUnstored(added)
                throw QueueError(.invalidRequest, "The stream for \(item.shownName) is already in a queue. A stream can be sent only once.")
            }
            added.append(draft)
            let path = spool.folder.appending(String(decoding: draft.source, as: UTF8.self))
            let entry = Entry(session: session, spool: StreamSpool(producer, at: path, for: item.shownName, clock: clock))
            entries.withLock { $0[draft.source] = entry }
        }
    }

    /// Removes the streams of items that were not stored, so that the app can enqueue the streams again.
    func removeUnstored(_ drafts: [ItemDraft]) {
        for draft in drafts where draft.kind == .stream {
            entries.withLock { $0.removeValue(forKey: draft.source) }?.spool.releaseProducer()
        }
    }

    /// Ends the stream of an item that is completed, has failed or will not be sent.
    func end(_ name: Data, _ error: TransferError) {
        entries.withLock { $0.removeValue(forKey: name) }?.spool.end(error)
    }

    /// Ends the streams of sessions that were cancelled or completed, or that left the queue.
    ///
    /// - Parameter keepsFile: Whether a later process may continue the streams; otherwise their files are deleted.
    func end(_ sessions: [SessionID], _ error: TransferError, keepsFile: Bool = false) {
        let ended = entries.withLock { entries in
            guard !entries.isEmpty else { return [StreamSpool]() }
            let sessions = Set(sessions)
            let ended = entries.filter { sessions.contains($0.value.session) }
            for name in ended.keys { entries[name] = nil }
            return ended.values.map(\.spool)
        }
        for spool in ended { spool.end(error, keepsFile: keepsFile) }
    }

    /// Ends the streams of the sessions that were cancelled, removed or completed according to the events.
    func handle(_ events: [QueueEvent.Kind]) {
        guard entries.withLock({ !$0.isEmpty }) else { return }
        for event in events {
            switch event {
            case .cancelled(let sessions):
                end(sessions, TransferError(.sourceLost, .cancelled, "The session that sends this stream was cancelled."))
            case .removed(let sessions, _), .draftsRemoved(let sessions):
                end(sessions, TransferError(.sourceLost, .cancelled, "The session that sends this stream was removed."))
            case .completed(let session): end([session], TransferError(.sourceLost, .cancelled, "The stream has arrived."))
            default: break
            }
        }
    }

    /// Ends all streams because the queue shuts down. When the call returns, their files are closed. The files are kept for the next
    /// opening of the queue.
    func endAll() async {
        let spools = entries.withLock { entries in
            defer { entries = [:] }
            return entries.values.map(\.spool)
        }
        let error = TransferError(.sourceLost, .producerGone, "The queue that sends this stream was shut down.")
        for closing in spools.map({ $0.end(error, keepsFile: true) }) { await closing?.value }
    }
}
