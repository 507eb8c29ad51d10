import Foundation
import SystemPackage
import TransferCore

/// The streams of a queue's sessions, by their names in the spool. They belong to this process: no other one has the rest of their bytes.
package final class StreamRegistry: Sendable {
    private struct Entry: Sendable {
        let session: SessionID
        let spool: StreamSpool
    }

    private let entries = Locked<[Data: Entry]>([:])

    package init() {}

    func find(_ name: Data) -> StreamSpool? {
        entries.withLock { $0[name]?.spool }
    }

    /// Takes the streams of items that are about to be stored.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest` if one of them is in a queue already; none is taken then.
    func add(
        _ items: [TransferItem], _ drafts: [ItemDraft], of session: SessionID, in spool: Spool, clock: EngineClock
    ) throws(QueueError) {
        var taken: [ItemDraft] = []
        for (item, draft) in zip(items, drafts) {
            guard case .stream(let producer) = item.content else { continue }
            guard producer.claim() else {
                withdraw(taken)
                throw QueueError(.invalidRequest, "The stream for \(item.shownName) is in a queue already; it can be sent once.")
            }
            taken.append(draft)
            let path = spool.folder.appending(String(decoding: draft.source, as: UTF8.self))
            let entry = Entry(session: session, spool: StreamSpool(producer, at: path, for: item.shownName, clock: clock))
            entries.withLock { $0[draft.source] = entry }
        }
    }

    /// The items were not stored after all: their streams may be handed over again.
    func withdraw(_ drafts: [ItemDraft]) {
        for draft in drafts where draft.kind == .stream {
            entries.withLock { $0.removeValue(forKey: draft.source) }?.spool.producer.unclaim()
        }
    }

    /// An item is finished, in one way or the other, or will never be.
    func end(_ name: Data, _ error: TransferError) {
        entries.withLock { $0.removeValue(forKey: name) }?.spool.end(error)
    }

    /// Sessions ended for good.
    func end(_ sessions: [SessionID], _ error: TransferError) {
        let ended = entries.withLock { entries in
            guard !entries.isEmpty else { return [StreamSpool]() }
            let sessions = Set(sessions)
            let ended = entries.filter { sessions.contains($0.value.session) }
            for name in ended.keys { entries[name] = nil }
            return ended.values.map(\.spool)
        }
        for spool in ended { spool.end(error) }
    }

    /// What happened may have been the end of sessions.
    func note(_ events: [QueueEvent.Kind]) {
        guard entries.withLock({ !$0.isEmpty }) else { return }
        for event in events {
            switch event {
            case .cancelled(let sessions):
                end(sessions, TransferError(.sourceLost, .cancelled, "The session that sends this stream was cancelled."))
            case .removed(let sessions, _):
                end(sessions, TransferError(.sourceLost, .cancelled, "The session that sends this stream was removed."))
            case .completed(let session): end([session], TransferError(.sourceLost, .cancelled, "The stream has arrived."))
            default: break
            }
        }
    }

    /// The queue ends.
    func endAll() {
        let spools = entries.withLock { entries in
            defer { entries = [:] }
            return entries.values.map(\.spool)
        }
        for spool in spools { spool.end(TransferError(.sourceLost, .producerGone, "The queue that sends this stream was shut down.")) }
    }
}
