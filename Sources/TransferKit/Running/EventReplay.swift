import Foundation
import TransferCore

/// Reads from the change log what a subscriber has yet to see of the past.
struct EventReplay: Sendable {
    private let log: QueueStore
    private var range: ClosedRange<UInt64>?
    private var page: ArraySlice<QueueEvent> = []

    /// - Parameters:
    ///   - revision: The last event that the subscriber knows.
    ///   - present: The last event that was published before the subscription.
    init(log: QueueStore, after revision: UInt64, present: UInt64) {
        self.log = log
        if revision < present {
            range = revision + 1...present
        } else if revision > present {
            // Only a store that was put back to an earlier state has not come that far.
            page = [.gap(present + 1...revision, at: Date())]
        }
    }

    /// Reads these next: the subscriber did not take them in time.
    mutating func read(_ missed: ClosedRange<UInt64>) {
        range = missed
    }

    /// The next event of the past; nil if the log has been read as far as was asked for.
    ///
    /// - Throws: `CancellationError`.
    mutating func next() async throws -> QueueEvent? {
        if let event = page.popFirst() { return event }
        guard let range else { return nil }
        do {
            page = try await log.events(in: range)[...]
        } catch let error as CancellationError {
            throw error
        } catch {
            // The subscriber learns that it has to look elsewhere; the store tells of its trouble itself.
            page = [.gap(range, at: Date())]
        }
        let last = page.last?.revision ?? range.upperBound
        self.range = last < range.upperBound ? last + 1...range.upperBound : nil
        return page.popFirst()
    }
}
