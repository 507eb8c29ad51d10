import Foundation
import Locking
import Logging
import TransferCore
import TransferKit

/// Serves one request of one client.
struct ControlClient: Sendable {
    /// The maximum number of sessions, items or other values in one part of a response. Parts with IDs have a higher limit.
    private static let partSize = 500

    let connection: ControlConnection
    let queue: TransferQueue
    let owner: QueueOwner
    let onStopRequest: (@Sendable () -> Void)?
    /// The maximum size of a request, in bytes.
    let requestLimit: Int

    /// Serves the client's request, and returns when the request is complete. If the client disconnects earlier, cancels a request that can
    /// wait forever (``ControlRequest/isWait``), but still completes any other request.
    ///
    /// - Parameters:
    ///   - didReceive: Called after the first message.
    ///   - subscribe: Called when the client requests events or sends a stream. Returns whether the limit for such clients allows the request.
    func serve(_ didReceive: () -> Void, subscribe: @escaping @Sendable (_ isStream: Bool) -> Bool) async throws(QueueError) {
        let greeting = try await connection.read(Greeting.self)
        didReceive()
        let isKnown = greeting.protocol == Greeting.protocolName && greeting.versions.contains(Greeting.version)
        try await connection.write(GreetingResponse(version: isKnown ? Greeting.version : nil, owner: owner))
        guard isKnown else { return }
        var staged = StagedContent(limit: requestLimit)
        while true {
            let request = try await connection.read(ControlRequest.self)
            guard case .stage(let part) = request else { return await respond(to: request, staged, subscribe) }
            staged.append(part, size: await connection.sizeOfLastMessage)
        }
    }

    private func respond(
        to request: ControlRequest, _ staged: StagedContent, _ subscribe: @escaping @Sendable (_ isStream: Bool) -> Bool
    ) async {
        let work = Task {
            do {
                try request.check()
                try staged.check()
                if owner.role == .member, !request.isRead, !request.isEnd {
                    throw QueueError(
                        .invalidRequest,
                        "Process \(owner.processID) runs this queue as a member of a fleet, so only the fleet can change it. Use --fleet URL."
                    )
                }
                if request.isOpenEnded, !subscribe(request.isStream) {
                    throw QueueError(
                        .tooManySubscribers,
                        "Process \(owner.processID), which owns the queue, already serves the maximum number of subscribers and streams. Stop a \"transferq watch\" or \"transferq stream\"."
                    )
                }
                try await perform(request, staged)
            } catch {
                // If the error can't be sent, the client has disconnected.
                try? await connection.write(ControlResponse<EmptyResult>(error: Self.queueError(error)))
            }
        }
        let isDone = Locked(false)
        connection.sendHeartbeats(while: { isDone.withLock { !$0 } }) { [weak connection] in
            connection?.interrupt()
            // A waiting request might never end. Until it ends, the disconnected client counts towards the client limit.
            if request.isWait { work.cancel() }
        }
        await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            work.cancel()
        }
        isDone.withLock { $0 = true }
    }

    private static func queueError(_ error: any Error) -> QueueError {
        switch error {
        case let error as QueueError: error
        case let error as TransferError: QueueError(.invalidRequest, error.description)
        case is CancellationError: QueueError(.shutDown, "The queue was shut down.")
        default: QueueError(.invalidRequest, "\(error)")
        }
    }

    private func perform(_ request: ControlRequest, _ staged: StagedContent) async throws {
        switch request {
        case .owner: try await send(owner)
        case .accounts: try await send(list: await queue.accounts())
        case .account(let name): try await send(list: [await queue.account(name)].compactMap(\.self))
        case .save(let account): try await send(queue.save(account))
        case .replace(let previous, let account): try await send(queue.save(account, replacing: previous))
        case .deleteAccount(let name, let cascades): try await send(queue.deleteAccount(name, cascades: cascades))
        case .unblockAccount(let name): try await send(queue.unblockAccount(name))
        case .retryEndpoints(let account): try await send(queue.retryEndpoints(of: account))
        case .status: try await send(await queue.status())
        case .remainingUploads: try await send(await queue.remainingSessions())
        case .statistics: try await send(queue.statistics())
        case .forecast: try await send(list: queue.forecast())
        case .storeHealth: try await send(queue.storeHealth())
        case .quarantinedCount: try await send(queue.quarantinedCount())
        case .quarantined: try await send(list: queue.quarantined())
        case .restoreQuarantined(let number): try await send(queue.restoreQuarantined(number))
        case .dropQuarantined(let number): try await send(queue.dropQuarantined(number))
        case .setMaxConcurrentSessions(let limit, let account): try await send(queue.setMaxConcurrentSessions(limit, account: account))
        case .setRateLimit(let rate, let account): try await send(queue.setRateLimit(rate, account: account))
        case .setTimetable(let timetable, let account): try await send(queue.setTimetable(timetable, account: account))
        case .setRetention(let retention): try await send(queue.setRetention(retention))
        case .setDiskFloor(let bytes): try await send(queue.setDiskFloor(bytes))
        case .setNetworkCondition(let condition): try await send(queue.setNetworkCondition(condition))
        case .start: try await send(queue.start())
        case .stop(let mode, let deadline): try await send(queue.stop(mode, deadline: deadline))
        case .stopAndWait(let mode, let deadline): try await send(queue.stopAndWait(mode, deadline: deadline))
        case .sessions(let start, let end): try await send(queue.sessions(max(0, start)..<max(0, start, end)))
        case .sessionsOfGroup(let group): try await send(queue.sessions(in: group))
        case .stagedSessions: try await send(queue.sessions(in: .sessions(staged.ids)))
        case .sessionIDs: try await send(list: await queue.sessionIDs(), part: 20_000)
        case .findSessionIDs(let prefix, let limit):
            try await send(list: queue.sessionIDs(beginningWith: prefix, limit: limit), part: 20_000)
        case .session(let id): try await send(queue.status(of: id))
        case .items(let id, let position, let limit):
            try await send(list: queue.items(of: id, from: position, limit: min(limit, 10_000)).map(ItemStatusRecord.init))
        case .add(let index, let held):
            try await send(list: queue.add(staged.requests(in: queue.baseFolder), at: index, held: held), part: 20_000)
        case .addInOrder(let revision, let index, let held):
            let requests = try staged.requests(in: queue.baseFolder)
            try await send(list: queue.add(requests, at: index, expecting: revision, held: held), part: 20_000)
        case .saveDrafts: try await send(list: queue.saveDrafts(staged.requests(in: queue.baseFolder)), part: 20_000)
        case .addItems(let session): try await send(queue.addItems(staged.transferItems(in: queue.baseFolder), to: session))
        case .replaceItems(let selection, let session):
            try await send(queue.replaceItems(selection, with: staged.transferItems(in: queue.baseFolder), in: session))
        case .apply(let operation, let session): try await send(list: [queue.apply(operation, to: session)].compactMap(\.self))
        case .applyToGroup(let operation, let group): try await send(list: queue.apply(operation, to: group), part: 20_000)
        case .applyToStaged(let operation): try await send(list: queue.apply(operation, to: .sessions(staged.ids)), part: 20_000)
        case .addStream(let name, let length, let index, let held):
            try await receiveStream(
                as: RemotePath(bytes: Array(name)), length: length, of: staged.requests(in: queue.baseFolder), at: index, held: held)
        case .end: try await end()
        case .events(let revision): try await sendEvents(since: revision)
        case .stage: break
        }
    }

    func send(_ value: some Codable & Sendable) async throws {
        try await connection.write(ControlResponse(value: value))
    }

    func send(_ nothing: Void) async throws {
        try await send(EmptyResult())
    }

    private func send(_ sessions: [SessionStatus]) async throws {
        try await send(sessions, inPartsOf: Self.partSize) { SessionRows($0) }
    }

    private func send(list: [some Codable & Sendable], part: Int = partSize) async throws {
        try await send(list, inPartsOf: part) { Array($0) }
    }

    /// Sends a list in parts of at most `part` values. If a part is too large for one message, tries parts with fewer values.
    private func send<Element: Sendable>(
        _ list: [Element], inPartsOf part: Int, _ value: (ArraySlice<Element>) -> some Codable & Sendable
    ) async throws {
        var rest = list[...]
        var part = part
        repeat {
            let values = rest.prefix(part)
            let isLast = values.count == rest.count
            let encoded = Result { () throws(QueueError) in
                try ControlConnection.encoded(ControlResponse(value: value(values), more: !isLast))
            }
            if case .failure(let error) = encoded, error.code == .invalidMessage, part > 1 {
                part = max(1, part / 8)
                continue
            }
            try await connection.write(data: encoded.get())
            rest = rest.dropFirst(values.count)
        } while !rest.isEmpty
    }

    private func sendEvents(since revision: UInt64?) async throws {
        let events = revision.map { queue.events(since: $0) } ?? queue.events
        try await send(queue.revision)
        for await event in events {
            try await connection.write(data: Self.encoded(event))
        }
        try await connection.write(EventMessage(event: nil))
    }

    private static func encoded(_ event: QueueEvent) throws(QueueError) -> Data {
        do {
            return try ControlConnection.encoded(EventMessage(event: event))
        } catch {
            // The event lists too many sessions for one message. Send the event `gap` instead, so that the client reads the current state.
            let gap = QueueEvent(revision: event.revision, time: event.time, kind: .gap(from: event.revision, to: event.revision))
            return try ControlConnection.encoded(EventMessage(event: gap))
        }
    }

    /// Calls the handler for stop requests, and responds when the storage folder has been released. The end of the queue's event stream marks
    /// this moment.
    private func end() async throws {
        guard let onStopRequest else {
            throw QueueError(
                .invalidTransition, "Process \(owner.processID), which owns the queue, is not an agent. Stop that program directly.")
        }
        let events = queue.events
        onStopRequest()
        for await _ in events {}
        try await send(EmptyResult())
    }
}
