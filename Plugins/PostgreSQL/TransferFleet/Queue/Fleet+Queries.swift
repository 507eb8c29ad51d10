import Foundation
import SystemPackage
import TransferCore
public import TransferKit

extension Fleet {
    /// Like `TransferQueue.status()`.
    public func status() async throws -> QueueStatus {
        let state = try await store.state()
        var status = QueueStatus(
            mode: state.isStopped ? .stopped : .running, counts: state.counts, orderRevision: state.orderRevision, revision: state.revision)
        (status.scheduled, status.nextDue) = (state.scheduled, state.nextDue)
        status.isIdle = !state.isStopped && status.running == 0 && status.waiting == 0
        status.maxConcurrentSessions = state.maxSessions ?? .max
        status.retention = state.retention
        (status.rateLimit, status.currentRateLimit) = (state.rateLimit, state.rateLimit)
        return status
    }

    /// Like `TransferQueue.remainingSessions()`.
    public func remainingSessions() async throws -> Int {
        let state = try await store.state()
        return (state.counts[.running] ?? 0) + (state.counts[.waiting] ?? 0)
    }

    /// Like `TransferQueue.statistics()`.
    public func statistics() async throws -> QueueStatistics {
        var total = QueueStatistics()
        for (state, figures) in try await store.statistics() {
            total.files += figures.files
            total.filesDone += figures.filesDone
            total.filesFailed += figures.filesFailed
            total.bytesTotal = total.bytesTotal.addingSaturated(figures.bytesKnown)
            total.bytesDone = total.bytesDone.addingSaturated(figures.bytesDone)
            total.bytesSent = total.bytesSent.addingSaturated(figures.bytesSent)
            if state == .running, let rate = figures.rate { total.rate = (total.rate ?? 0) + rate }
            if state == .running || state == .waiting {
                total.bytesRemaining = total.bytesRemaining.addingSaturated(max(0, figures.bytesKnown - figures.bytesDone))
            }
        }
        if let rate = total.rate, rate > 0 { total.secondsRemaining = Double(total.bytesRemaining) / rate }
        return total
    }

    /// Returns an empty array, because a fleet makes no forecast.
    public func forecast() async throws -> [SessionForecast] { [] }

    /// Like `TransferQueue.sessions(_:)`.
    public func sessions(_ range: Range<Int>) async throws -> [SessionStatus] {
        let (state, rows) = try await store.sessions(range: range.clamped(to: 0..<Int.max))
        return rows.map { SessionStatus($0.row, index: $0.index, in: state) }
    }

    /// Like `TransferQueue.sessions(in:)`.
    public func sessions(in group: SessionGroup) async throws -> [SessionStatus] {
        let (condition, values): (String, [String?]) =
            switch group {
            case .all: ("true", [])
            case .account(let name): ("session.account = $1", [name])
            case .tag(let tag): ("session.id IN (SELECT session FROM session_tag WHERE tag = $1)", [tag])
            case .state(let state): ("session.state = $1", [state.rawValue])
            case .sessions(let ids): ("session.id = ANY($1::uuid[])", [PostgresValue.array(ids.map { "\($0)" })])
            }
        let selectsFewSessions =
            switch group {
            case .sessions(let ids): ids.count <= 100
            case .state(let state): state == .running
            default: false
            }
        let (state, rows) = try await store.sessions(where: condition, values, selectsFewSessions: selectsFewSessions)
        return rows.map { SessionStatus($0.row, index: $0.index, in: state) }
    }

    /// Like `TransferQueue.sessionIDs()`.
    public func sessionIDs() async throws -> [SessionID] { try await store.sessionIDs() }

    /// Like `TransferQueue.sessionIDs(beginningWith:limit:)`.
    public func sessionIDs(beginningWith prefix: String, limit: Int) async throws -> [SessionID] {
        let prefix = prefix.lowercased()
        return Array(try await sessionIDs().lazy.filter { "\($0)".hasPrefix(prefix) }.prefix(max(0, limit)))
    }

    /// Like `TransferQueue.status(of:)`.
    public func status(of id: SessionID) async throws -> SessionStatus {
        guard let status = try await sessions(in: .sessions([id])).first else {
            throw QueueError(.noSuchSession, "There is no session \(id).")
        }
        return status
    }

    /// Like `TransferQueue.items(of:from:limit:)`.
    public func items(of id: SessionID, from position: Int64, limit: Int) async throws -> [ItemStatus] {
        let (_, rows) = try await store.sessions(where: "session.id = $1", ["\(id)"], selectsFewSessions: true)
        guard let draft = rows.first?.row.draft else { throw QueueError(.noSuchSession, "There is no session \(id).") }
        let progress = Dictionary(grouping: try await store.progress(of: id), by: \.position)
        let start = min(Int(clamping: max(0, position)), draft.items.count)
        return try (start..<draft.items.count).prefix(max(0, limit)).map { position in
            try ItemStatus(draft, at: position, progress[Int64(position)]?.map(\.event) ?? [])
        }
    }
}

extension ItemStatus {
    fileprivate init(_ draft: SessionDraft, at position: Int, _ events: [FileEvent]) throws {
        let item = draft.items[position]
        var source = FilePath(bytes: [UInt8](item.source))
        if item.kind == .download, let folder = draft.folder { source = FilePath(bytes: [UInt8](folder)).pushing(source) }
        self.init(
            position: Int64(position), source: source, destination: try RemotePath(bytes: [UInt8](item.destination)), state: .pending,
            bytesTotal: item.isUnsized ? nil : item.size, bytesDone: 0)
        if let form = item.form {
            formFiles = form.statuses()
            self.source = formFiles.lazy.compactMap(\.source).first ?? FilePath()
        }
        for event in events {
            switch event {
            case .checkpoint(let checkpoint, _, _, _):
                bytesDone = max(bytesDone, checkpoint.confirmed)
                partialExpiresAt = checkpoint.expiresAt
            case .size(let size): bytesTotal = size
            case .completed(let receipt, _):
                (state, error, bytesDone) = (.completed, nil, receipt.bytes)
                (remoteURL, checksum, serverResponse, warnings) = (
                    receipt.remoteURL, receipt.checksum, receipt.serverResponse, receipt.warnings
                )
            case .failed(let reason): (state, error) = (.failed, reason)
            case .restarted(_, let reason): error = reason
            case .foundFolder, .record: break
            }
        }
        bytesSent = bytesDone
    }
}

extension SessionStatus {
    init(_ row: FleetSessionRow, index: Int, in state: FleetState) {
        let draft = row.draft
        self.init(
            id: row.id, index: index, state: row.state, name: draft.name, direction: draft.direction, account: draft.account,
            statistics: row.statistics, createdAt: row.createdAt)
        if row.state == .running { phase = .transferring }
        host = row.owner
        why = WaitReason(row, in: state)
        (tags, context) = (Set(draft.tags).sorted(), draft.context)
        (attempts, error) = (row.attempts, row.error)
        (startedAt, endedAt, notBefore) = (row.startedAt, row.endedAt, row.notBefore)
        dependency = row.after.map { SessionDependency($0.id, acceptsAnyEnd: $0.acceptsAnyEnd) }
        (rateLimit, deadline) = (draft.options.rateLimit, draft.options.deadline)
        if row.state == .running, let seconds = row.statistics.secondsRemaining { expectedEnd = Date(timeIntervalSinceNow: seconds) }
    }
}

extension WaitReason {
    /// The first unmet condition of a waiting session; nil if a member will take the session soon.
    fileprivate init?(_ row: FleetSessionRow, in state: FleetState) {
        guard row.state == .waiting else { return nil }
        if let member = row.owner {
            self = .leased(to: member)
        } else if let id = row.displacedBy {
            self = .displaced(by: id)
        } else if let after = row.after {
            self = .after(after.id, after.state)
        } else if let date = row.notBefore, row.isBeforeStartTime {
            self = .notBefore(date)
        } else if state.isStopped {
            self = .queueNotRunning
        } else if !row.hasMember {
            let refusals = row.refusals.map { "\"\($0.member)\" (\($0.message))" }
            self = .noHost("\(row.place)\(refusals.isEmpty ? "" : ", but not on ")\(refusals.joined(separator: ", "))")
        } else if row.isAccountFull {
            self = .accountLimit
        } else if let first = state.first, first != row.id {
            self = .order(after: first)
        } else if state.freeSlots == 0 || state.maxSessions.map({ state.owned >= $0 }) ?? false {
            self = .queueLimit
        } else {
            return nil
        }
    }
}
