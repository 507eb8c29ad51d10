import Foundation
package import SystemPackage

extension TransferQueue {
    /// A snapshot of the queue.
    public func status() async -> QueueStatus {
        await waitForEarlierInputs()
        var status = scheduler.status(at: configuration.clock.moment)
        status.revision = hub.revision
        status.currentRateLimit = configuration.clock.currentLimit(status.rateLimit, status.timetable)
        let interrupted = scheduler.sessionIndex.live.count { scheduler.sessionIndex[$0]?.shownState == .running && waitsForStore($0) }
        status.running -= interrupted
        status.waiting += interrupted
        return status
    }

    /// The number of sessions that are running, or that will start without an action by the app or the user.
    ///
    /// Includes sessions that start in turn, at a later time, or after another included session, and removed sessions whose run has not ended.
    /// Excludes all other sessions, such as paused and held sessions, sessions of a blocked account, and sessions that depend on an excluded
    /// session. On a queue that was not started, this is the number of sessions that would run or start after ``start()``.
    ///
    /// On a started queue, 0 means that the queue is idle: no session starts until the app or the user acts.
    public func remainingSessions() async -> Int {
        await waitForEarlierInputs()
        return scheduler.remaining(at: configuration.clock.moment)
    }

    /// Whether to show a running session as waiting, because the database refuses changes. In the scheduler, the session is still running.
    private func waitsForStore(_ key: SessionKey) -> Bool {
        guard let refusal else { return false }
        return refusal.interrupted.contains(key) || live[key] == nil
    }

    /// The base folder of relative local paths; nil if the queue resolves relative paths against the working directory in which it was
    /// opened.
    package nonisolated var baseFolder: FilePath? { store.sources.base }

    /// Snapshots of sessions, in the order of the queue.
    ///
    /// - Parameters:
    ///   - range: The indices; indices after the last session are ignored.
    /// - Throws: ``QueueError`` if the database can't be read.
    public func sessions(_ range: Range<Int> = 0..<Int.max) async throws -> [SessionStatus] {
        await waitForEarlierInputs()
        let range = range.clamped(to: 0..<scheduler.sessionIndex.count)
        return try await statuses(range.map { (index: $0, key: scheduler.sessionIndex.order[$0]) })
    }

    /// Snapshots of the sessions of a group, in the order of the queue: `sessions(in: .state(.completed))`, `sessions(in: .tag("dailies"))`. A
    /// group of IDs can contain IDs of removed sessions, which the result omits.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchAccount`, or if the database can't be read.
    public nonisolated func sessions(in group: SessionGroup) async throws -> [SessionStatus] {
        if case .sessions(let ids) = group { return try await statuses(of: Array(Set(ids))) }
        return try await statuses(of: allMembers(of: group))
    }

    private func statuses(of ids: [SessionID]) async throws -> [SessionStatus] {
        await waitForEarlierInputs()
        return try await statuses(
            ids.compactMap { id in
                scheduler.sessionIndex.key(of: id).map { (index: scheduler.sessionIndex.index(of: $0) ?? Self.noIndex, key: $0) }
            }
        ).sorted { ($0.index == Self.noIndex ? Int.max : $0.index) < ($1.index == Self.noIndex ? Int.max : $1.index) }
    }

    /// A snapshot of one session.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession`, or if the database can't be read.
    public func status(of id: SessionID) async throws -> SessionStatus { try await status(of: id, isForClient: true) }

    /// Like ``status(of:)``, but does not wait for the reads of clients. During such a wait, a member of a fleet, which is a queue of several
    /// hosts, could lose its leases on sessions.
    package func statusForMember(of id: SessionID) async throws -> SessionStatus { try await status(of: id, isForClient: false) }

    private func status(of id: SessionID, isForClient: Bool) async throws -> SessionStatus {
        await waitForEarlierInputs()
        guard let key = scheduler.sessionIndex.key(of: id),
            var status = try await statuses(
                [(index: scheduler.sessionIndex.index(of: key) ?? Self.noIndex, key: key)], isForClient: isForClient
            ).first
        else {
            throw QueueError(.noSuchSession, "There is no session \(id).")
        }
        var times = try await read(isForClient: isForClient) { [store] in try await store.times(of: key) }
        if let run = live[key] { times += run.times }
        status.times = times
        return status
    }

    /// The index that stands for a draft, because drafts are not in the order.
    private static let noIndex = -1

    /// The IDs of all sessions in the order of the queue. Omits drafts; see ``SessionGroup``.
    public func sessionIDs() async -> [SessionID] {
        await waitForEarlierInputs()
        return scheduler.sessionIndex.order.compactMap { scheduler.sessionIndex[$0]?.id }
    }

    /// The session IDs that begin with the given characters, ignoring case, in the order of the queue. The IDs of drafts follow.
    ///
    /// - Parameters:
    ///   - prefix: The first characters of an ID.
    ///   - limit: The maximum number of IDs.
    public nonisolated func sessionIDs(beginningWith prefix: String, limit: Int) async -> [SessionID] {
        let wanted = prefix.lowercased()
        if let id = SessionID(wanted), limit > 0 { return (try? await session(id)) == nil ? [] : [id] }
        return Array(await (sessionIDs() + draftIDs()).lazy.filter { $0.description.hasPrefix(wanted) }.prefix(max(0, limit)))
    }

    private func draftIDs() -> [SessionID] {
        scheduler.sessionIndex.drafts.sorted().compactMap { scheduler.sessionIndex[$0]?.id }
    }

    /// The handle of a session.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession`.
    public func session(_ id: SessionID) async throws -> TransferSession {
        await waitForEarlierInputs()
        guard scheduler.sessionIndex.key(of: id) != nil else { throw QueueError(.noSuchSession, "There is no session \(id).") }
        return TransferSession(id: id, queue: self)
    }

    /// Snapshots of one page of a session's items, in order.
    ///
    /// A session can have a million items. To read all of them, repeat the call with the position after the last item, until the result is empty.
    ///
    /// - Parameters:
    ///   - id: The session.
    ///   - position: The position of the first item, from 0.
    ///   - limit: The maximum number of items. Default: 1,000.
    /// - Throws: ``QueueError`` with the code `noSuchSession`, or if the database can't be read.
    public func items(of id: SessionID, from position: Int64 = 0, limit: Int = 1_000) async throws -> [ItemStatus] {
        await waitForEarlierInputs()
        guard let key = scheduler.sessionIndex.key(of: id) else { throw QueueError(.noSuchSession, "There is no session \(id).") }
        var items = try await clientReads.run {
            try await store.items(of: key, from: max(0, position), limit: max(0, limit))
        }
        guard let active = live[key]?.activeFiles else { return items }
        for file in active {
            if let index = items.firstIndex(where: { $0.position == file.position && $0.state == .pending }) {
                items[index].bytesDone = file.confirmed
                items[index].bytesSent = max(file.confirmed, file.sent)
            }
        }
        return items
    }

    private func read<Value>(isForClient: Bool, _ body: () async throws -> sending Value) async throws -> sending Value {
        isForClient ? try await clientReads.run(body) : try await body()
    }

    /// Returns the stored snapshots of sessions, updated with values that exist only in memory, such as rates. Quarantines and omits
    /// sessions that can't be read.
    private func statuses(_ sessions: [(index: Int, key: SessionKey)], isForClient: Bool = true) async throws -> [SessionStatus] {
        let keys = sessions.map(\.key)
        let (records, unreadable) = try await read(isForClient: isForClient) { [store] in try await store.readSessions(keys) }
        for (key, reason) in unreadable { quarantine(key, reason) }
        let indices = Dictionary(uniqueKeysWithValues: sessions.map { ($0.key, $0.index) })
        let now = configuration.clock.moment
        return records.map { record in
            var status = record.status
            status.statistics.neverFall(below: shown[record.key] ?? ShownFigures())
            status.index = indices[record.key] ?? 0
            let details = scheduler.sessionIndex.details(record.key)
            (status.notBefore, status.dependency) = (details.notBefore, details.dependency)
            if let view = scheduler.view(record.key), view.isEnding, view.target == status.state {
                status.state = .running
                status.phase = .ending
                if let statistics = live[record.key]?.statistics(at: now.uptime) { status.statistics = statistics }
                return status
            }
            switch status.state {
            case .waiting: status.why = scheduler.why(record.key, at: now)
            case .running:
                if let refusal, waitsForStore(record.key) {
                    status.state = .waiting
                    status.why = .storageRefusesChanges(refusal.problem)
                    return status
                }
                status.phase = live[record.key]?.phase ?? .connecting
                status.why = live[record.key]?.waitReason(at: now.uptime)
                if let statistics = live[record.key]?.statistics(at: now.uptime) { status.statistics = statistics }
                // With a rate close to 0, the remaining time is huge. Limit it to 100 years, so that the date stays valid.
                status.expectedEnd = status.statistics.secondsRemaining.map { now.date.addingTimeInterval(min($0, 3_155_760_000)) }
            case .completed, .failed, .paused, .held, .draft, .cancelled: break
            }
            return status
        }
    }
}
