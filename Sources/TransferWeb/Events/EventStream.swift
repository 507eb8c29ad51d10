import Foundation
import HummingbirdCore
import Locking
import NIOCore
import TransferKit
import TransferOutput

/// Sends the events of the queue to clients as server-sent events (HTML Standard, section 9.2).
struct EventStream: Sendable {
    let feed: EventFeed
    let source: EventSource
    let status: @Sendable () async throws -> QueueStatus
    /// The number of clients.
    let clients: Locked<Int>
    let limits: WebLimits

    /// The response for a client.
    ///
    /// - Parameter revision: The revision of the last event that the client received; nil for new events only.
    func response(since revision: UInt64?) throws(Problem) -> WebResponse {
        let isAdmitted = clients.withLock { count in
            guard count < limits.eventClients else { return false }
            count += 1
            return true
        }
        guard isAdmitted else {
            var problem = Problem(
                503, "tooManySubscribers", "The server already sends events to \(limits.eventClients) clients. Close a page.")
            problem.headers = [(name: "Retry-After", value: "5")]
            throw problem
        }
        var response = WebResponse(200, "text/event-stream")
        response.stream = { writer in
            defer { clients.withLock { $0 -= 1 } }
            var output = EventOutput(writer)
            try await send(since: revision, to: &output)
        }
        return response
    }

    @concurrent
    private func send(since revision: UInt64?, to output: inout EventOutput) async throws {
        // The delay before the browser reconnects, in milliseconds.
        try await output.write("retry: 1000\n\n")
        var position = try await catchUp(since: revision, to: &output)
        var wasReachable = true
        for await _ in await feed.signals() {
            let batch = await feed.batch(after: position)
            position = batch.position
            var text = ""
            if batch.isReachable != wasReachable {
                wasReachable = batch.isReachable
                text += "event: owner\ndata: {\"isReachable\":\(batch.isReachable)}\n\n"
            }
            if batch.isIncomplete, let first = batch.entries.first {
                text += EventOutput.text(.gap(upTo: first.event.revision))
            }
            for entry in batch.entries { text += EventOutput.text(entry.event) }
            try await output.write(text.isEmpty ? ":\n\n" : text)
            // Progress can arrive hundreds of times a second. Newer progress replaces it while this client waits.
            if batch.hasOnlyProgress, !batch.entries.isEmpty { try await Task.sleep(for: .milliseconds(200)) }
        }
    }

    /// Sends the events that the feed no longer contains.
    ///
    /// - Returns: The client's position in the feed.
    @concurrent
    private func catchUp(since revision: UInt64?, to output: inout EventOutput) async throws -> Int {
        var known = await feed.end
        if known == nil {
            // The server has not reached the queue yet, so it does not know which events the client needs.
            for await _ in await feed.signals() {
                known = await feed.end
                if known != nil { break }
                try await output.write(":\n\n")
            }
        }
        guard let end = known else { return 0 }
        guard let revision else { return end.position }
        if let position = await feed.position(after: revision) { return position }
        if revision > end.revision {
            // The client can be ahead of the feed by a moment. A client with a revision of another store must read the current state.
            let current = try? await status().revision
            if let current, revision <= current { return end.position }
            try await output.write(EventOutput.text(.gap(upTo: current ?? end.revision)))
            return end.position
        }
        for try await event in source(revision) where !event.isProgress {
            try await output.write(EventOutput.text(event))
            if event.revision >= end.revision { break }
        }
        return await feed.position(after: end.revision) ?? end.position
    }
}

extension QueueEvent {
    /// A gap, after which a client reads the current state.
    fileprivate static func gap(upTo revision: UInt64) -> QueueEvent {
        QueueEvent(revision: revision, time: Date(), kind: .gap(from: 0, to: revision))
    }
}

/// The text of events for one client.
private struct EventOutput {
    private var writer: any ResponseBodyWriter

    init(_ writer: any ResponseBodyWriter) { self.writer = writer }

    @concurrent
    mutating func write(_ text: String) async throws { try await writer.write(ByteBuffer(string: text)) }

    /// An event with its revision as the ID. JSON on one line needs no further escapes.
    static func text(_ event: QueueEvent) -> String {
        "id: \(event.revision)\ndata: \(JSONValue(event, index: nil).text)\n\n"
    }
}
