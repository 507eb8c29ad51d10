import Foundation
import GRDB
import TransferCore

struct SessionInsertion {
    private var session: RowInsertion
    private var schedule: RowInsertion
    private var file: RowInsertion
    /// The options of the last session and their encoded form. Many sessions have the same options, which are then encoded only once.
    private var lastOptions: (options: SessionOptions, text: String)?

    init(_ db: Database) throws {
        session = try RowInsertion(
            db,
            """
            INSERT INTO session(key, account, name, direction, folder, context, options, files, bytes_total, created_at)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """)
        schedule = try RowInsertion(db, QueueStore.scheduleInsertion)
        file = try RowInsertion(
            db,
            """
            INSERT INTO file(session, position, kind, source, destination, state, size, upload_url, unsized, creation_url, form,
                symbolic_links)
            VALUES (?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?, ?)
            """)
    }

    mutating func insert(_ row: ScheduleRow, _ draft: SessionDraft, createdAt: Date, into db: Database) throws {
        let key = row.entry.key
        session.bind(key)
        session.bind(Int64(row.entry.account))
        session.bind(draft.name)
        session.bind(draft.direction.rawValue)
        session.bind(draft.folder)
        session.bind(draft.context)
        session.bind(try text(of: draft.options))
        session.bind(Int64(draft.items.count))
        session.bind(SessionFigures.bytes(draft.items))
        session.bind(StoreCoding.encode(createdAt))
        try session.insert()
        bindSchedule(row)
        try schedule.insert()
        try QueueStore.setTags(draft.tags, of: key, in: db)
        let files = draft.items.prefix { !$0.kind.isFolder }
        for (position, item) in files.enumerated() {
            file.bind(key)
            file.bind(Int64(position))
            file.bind(item.kind.rawValue)
            file.bind(item.source)
            file.bind(item.destination)
            file.bind(min(max(0, item.size), FileSize.maximum))
            file.bind(item.uploadCapability?.text)
            file.bind(item.isUnsized)
            file.bind(item.creationCapability?.text)
            file.bind(try StoreCoding.encodeIfPresent(item.form))
            file.bind(item.filePolicy)
            try file.insert()
        }
        guard files.count < draft.items.count else { return }
        try QueueStore.insertItems(Array(draft.items.dropFirst(files.count)), of: key, firstPosition: Int64(files.count), in: db)
    }

    private mutating func text(of options: SessionOptions) throws -> String? {
        guard options != Self.defaults else { return nil }
        if let lastOptions, lastOptions.options == options { return lastOptions.text }
        let text = try StoreCoding.encode(options)
        lastOptions = (options, text)
        return text
    }

    private static let defaults = SessionOptions()

    private mutating func bindSchedule(_ row: ScheduleRow) {
        let (entry, details) = (row.entry, row.details)
        schedule.bind(entry.key)
        schedule.bind(entry.id)
        schedule.bind(entry.rank)
        schedule.bind(Int64(entry.account))
        schedule.bind(entry.state.rawValue)
        schedule.bind(Int64(entry.startPriority.rawValue))
        schedule.bind(details.mark)
        schedule.bind(entry.conditions.contains(.keepsPartial))
        schedule.bind(details.displacedBy)
        schedule.bind(details.notBefore.map(StoreCoding.encode))
        schedule.bind(details.dependency?.session)
        schedule.bind(details.dependency?.acceptsAnyEnd)
        schedule.bind(details.deduplicationKey)
        schedule.bind(details.completedAt.map(StoreCoding.encode))
        schedule.bind(entry.conditions.contains(.needsCheapNetwork))
        schedule.bind(entry.conditions.contains(.hasTransferred))
        schedule.bind(details.deadline.map(StoreCoding.encode))
        schedule.bind(details.deadlineFrom.map(StoreCoding.encode))
    }
}
