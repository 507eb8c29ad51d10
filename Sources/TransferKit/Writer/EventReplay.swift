import Foundation
import TransferCore

/// Reads a subscriber's past events from the change log.
struct EventReplay: Sendable {
    private let log: QueueStore
    private let reads: ClientReads
    private var range: ClosedRange<UInt64>?
    private var page: ArraySlice<QueueEvent> = []

    /// - Parameters:
    ///   - reads: The limit for reads by clients.
    ///   - revision: The revision of the last event that the subscriber received.
    ///   - publishedRevision: The revision of the last event that was published before the subscription.
    init(log: QueueStore, reads: ClientReads, after revision: UInt64, publishedRevision: UInt64) {
        self.log = log
        self.reads = reads
        if revision < publishedRevision {
            range = revision + 1...publishedRevision
        } else if revision > publishedRevision {
            // The queue has published no event with this revision, for example because the storage folder was restored from a backup.
            page = [.gap(publishedRevision + 1...revision, at: Date())]
        }
    }

    /// Makes ``next()`` read the given events from the log, after the subscriber's full buffer dropped them.
    mutating func read(_ missed: ClosedRange<UInt64>) {
        range = missed
    }

    /// The next past event; nil if the requested range of the log has been read.
    ///
    /// - Throws: `CancellationError`.
    mutating func next() async throws -> QueueEvent? {
        if let event = page.popFirst() { return event }
        guard let range else { return nil }
        do {
            page = try await reads.run { try await log.events(in: range) }[...]
        } catch let error as CancellationError {
            throw error
        } catch {
            // The log can't be read. The subscriber gets a gap, as for events that the log no longer contains.
            page = [.gap(range, at: Date())]
        }
        let last = page.last?.revision ?? range.upperBound
        self.range = last < range.upperBound ? last + 1...range.upperBound : nil
        return page.popFirst()
    }
}
