import Foundation
import HummingbirdCore
import Locking
import NIOCore
import TransferKit
import TransferOutput

/// Sends the events of the queue to clients as server-sent events (HTML Standard, section 9.2).
struct EventStream: Sendable {
    let feed: EventFeed
    let queue: any ControllableQueue
    /// The number of clients that receive events.
    let clients: Locked<Int>
    let limits: WebLimits

    /// Returns the response for a client: an endless stream.
    ///
    /// - Parameter revision: The revision of the last event that the client received; nil to send only the events after the request.
    /// - Throws: A ``Problem`` if too many clients receive events.
    @concurrent
    func response(since revision: UInt64?) async throws -> WebResponse {
        guard let slot = ClientSlot(clients, limit: limits.eventClients) else {
            var problem = Problem(
                503, "tooManySubscribers", "The server already sends events to \(limits.eventClients) clients. Close a page.")
            problem.headers = [(name: "Retry-After", value: "5")]
            throw problem
        }
        // Read the revision before the client gets the headers. All events after the headers must reach the client, even if the feed reaches the
        // queue only later.
        let start: UInt64? = if let revision { revision } else { await currentRevision() }
        var response = WebResponse(200, "text/event-stream")
        response.stream = { writer in
            defer { withExtendedLifetime(slot) {} }
            var output = EventOutput(writer)
            try await send(since: start, to: &output)
        }
        return response
    }

    /// The revision of the last event; nil if the queue can't be reached.
    @concurrent
    private func currentRevision() async -> UInt64? {
        if let end = await feed.end { return end.revision }
        return try? await queue.status().revision
    }

    @concurrent
    private func send(since revision: UInt64?, to output: inout EventOutput) async throws {
        // The delay before the browser reconnects, in milliseconds.
        try await output.write("retry: 1000\n\n")
        var (position, sent) = try await catchUp(since: revision, at: feed.lastNumber, to: &output)
        for await _ in await feed.signals() {
            var next = await feed.batch(after: position)
            while next == nil {
                (position, sent) = try await catchUp(since: sent, at: position, to: &output)
                next = await feed.batch(after: position)
            }
            guard let batch = next else { continue }
            position = batch.position
            var text = output.ownerText(isReachable: batch.isReachable)
            for numbered in batch.events {
                text += EventOutput.text(numbered.event)
                if !numbered.event.isProgress { sent = numbered.event.revision }
            }
            try await output.write(text.isEmpty ? ":\n\n" : text)
            // Progress can arrive hundreds of times a second. While this client waits, newer progress replaces older progress.
            if batch.hasOnlyProgress, !batch.events.isEmpty { try await Task.sleep(for: .milliseconds(200)) }
        }
    }

    /// Sends events from the queue's change log until the feed contains all later events. While the queue can't be reached, waits for
    /// the queue.
    ///
    /// - Parameters:
    ///   - revision: The revision of the last event that the client received; nil for none.
    ///   - start: A position in the feed at which the database of the queue contained this revision.
    /// - Returns: The client's position in the feed, and the revision of the last event before it.
    @concurrent
    private func catchUp(
        since revision: UInt64?, at start: Int, to output: inout EventOutput
    ) async throws -> (position: Int, revision: UInt64) {
        var known = revision
        while true {
            try Task.checkCancellation()
            guard let end = await feed.end else {
                // The server has not reached the queue yet, so it does not know which events the client needs.
                try await wait(while: { end, _ in end == nil }, &output)
                continue
            }
            guard start >= end.databasePosition else {
                // The revision is from an earlier database of the queue.
                try await output.write(EventOutput.text(.gap(upTo: end.revision)))
                return (end.position, end.revision)
            }
            guard let last = known else { return (end.position, end.revision) }
            if let position = await feed.position(after: last) { return (position, last) }
            let isReachable = await feed.isReachable
            let text = output.ownerText(isReachable: isReachable)
            if !text.isEmpty { try await output.write(text) }
            guard isReachable else {
                try await wait(while: { _, isReachable in !isReachable }, &output)
                continue
            }
            guard last <= end.revision else {
                // The client can be slightly ahead of the feed. A client whose revision is from another database must read the current state.
                let current = try? await queue.status().revision
                guard let current, last <= current else {
                    try await output.write(EventOutput.text(.gap(upTo: current ?? end.revision)))
                    return (end.position, end.revision)
                }
                try await wait(while: { now, isReachable in now?.position == end.position && isReachable }, &output)
                continue
            }
            known = try await sendLog(after: last, upTo: end.revision, &output)
        }
    }

    /// Sends events from the change log. The feed can drop newer events during this call; a second call then sends them.
    ///
    /// - Returns: The revision of the last sent event.
    @concurrent
    private func sendLog(after known: UInt64, upTo end: UInt64, _ output: inout EventOutput) async throws -> UInt64 {
        for try await event in queue.eventStream(since: known) where !event.isProgress {
            try await output.write(EventOutput.text(event))
            // If the queue was restored from a backup, the revisions are lower.
            if event.revision >= end || event.revision < known { return event.revision }
        }
        // The owner of the queue has exited. This error ends the response. The client reconnects, and then gets the event `owner`.
        throw CancellationError()
    }

    /// Waits while a condition about the feed is true. Sends comments during the wait, to show that the connection is in use.
    @concurrent
    private func wait(
        while condition: (_ end: EventFeed.End?, _ isReachable: Bool) -> Bool, _ output: inout EventOutput
    ) async throws {
        for await _ in await feed.signals() {
            guard condition(await feed.end, await feed.isReachable) else { return }
            try await output.write(":\n\n")
        }
    }
}

/// A slot for one client, among the limited number of clients that receive events. Deinitialization releases the slot, even if the response was
/// never sent.
private final class ClientSlot: Sendable {
    private let clients: Locked<Int>

    init?(_ clients: Locked<Int>, limit: Int) {
        let isFree = clients.withLock { count in
            guard count < limit else { return false }
            count += 1
            return true
        }
        guard isFree else { return nil }
        self.clients = clients
    }

    deinit { clients.withLock { $0 -= 1 } }
}

private struct EventOutput {
    private var writer: any ResponseBodyWriter
    /// Whether the queue can be reached, according to the last event `owner`; true before the first one.
    private var wasReachable = true

    init(_ writer: any ResponseBodyWriter) { self.writer = writer }

    @concurrent
    mutating func write(_ text: String) async throws { try await writer.write(ByteBuffer(string: text)) }

    /// Returns the event `owner` if the queue has become reachable or unreachable since the last call; otherwise an empty text.
    mutating func ownerText(isReachable: Bool) -> String {
        guard isReachable != wasReachable else { return "" }
        wasReachable = isReachable
        return "event: owner\ndata: {\"isReachable\":\(isReachable)}\n\n"
    }

    /// The text of an event, with its revision as the ID. The JSON is on one line, as this format requires.
    static func text(_ event: QueueEvent) -> String {
        "id: \(event.revision)\ndata: \(JSONValue(event, index: event.index).text)\n\n"
    }
}
