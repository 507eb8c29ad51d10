package import Foundation

/// The sessions that one command adds, with the data to store. One command may add 100,000 sessions, so their drafts are not copied.
package struct NewSessions: Sendable {
    private let drafts: [SessionDraft]
    package let createdAt: Date
    private var entries: [Entry] = []
    /// The details, in the order of the entries. Most entries have none.
    private var details: [(key: SessionKey, details: EntryDetails)] = []

    package init(drafts: [SessionDraft], createdAt: Date) {
        self.drafts = drafts
        self.createdAt = createdAt
        entries.reserveCapacity(drafts.count)
    }

    /// Adds the scheduler's data about the next draft.
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
