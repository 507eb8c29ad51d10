package import Foundation

/// Sessions of one enqueueing as they are to be stored. There may be 100,000, so nothing of a draft is copied.
package struct NewSessions: Sendable {
    private let drafts: [SessionDraft]
    package let createdAt: Date
    private var entries: [Entry] = []
    /// In the order of the entries, of those that have any.
    private var details: [(key: SessionKey, details: EntryDetails)] = []

    package init(drafts: [SessionDraft], createdAt: Date) {
        self.drafts = drafts
        self.createdAt = createdAt
        entries.reserveCapacity(drafts.count)
    }

    /// Adds what the scheduler knows of the next of the drafts.
    package mutating func append(_ entry: Entry, _ details: EntryDetails = EntryDetails()) {
        if details != .none { self.details.append((entry.key, details)) }
        entries.append(entry)
    }

    /// Calls the body with each session, in order.
    package func forEach(_ body: (ScheduleRow, SessionDraft) throws -> Void) rethrows {
        var details = details[...]
        for (entry, draft) in zip(entries, drafts) {
            let own = details.first?.key == entry.key ? details.removeFirst().details : .none
            try body(ScheduleRow(entry: entry, details: own).durable, draft)
        }
    }
}
