public import Foundation
import TransferCore

/// A lightweight handle to a session, valid as long as the session exists.
public struct TransferSession: Sendable {
    /// The session's ID.
    public let id: SessionID

    /// The session's queue.
    public let queue: TransferQueue

    /// A snapshot of the session.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession` after the session was removed, or if the database can't be read.
    public var status: SessionStatus {
        get async throws { try await queue.status(of: id) }
    }

    /// The events of the session from now on: its current state first, its end last. Each access creates a new subscription.
    public var events: SessionEvents {
        SessionEvents(id: id, queue: queue, events: queue.hub.subscribe(to: id))
    }

    /// The final snapshot of the session. Waits until the session has ended.
    ///
    /// If the queue is stopped, the wait continues until the queue is started again. A session that waits for a retry has not ended.
    ///
    /// - Throws: The session's `TransferError` if it failed; a `TransferError` with the code `cancelled` if the session was cancelled or
    ///   removed; ``QueueError`` if the database can't be read; `CancellationError` if the task was cancelled or the queue was shut down.
    public var value: SessionStatus {
        get async throws {
            // The subscription precedes the first read, so that the end can't be missed.
            let events = queue.hub.subscribe(to: id)
            var status = try await currentStatus()
            var end = SessionEnd(status)
            var iterator = SessionEvents.AsyncIterator(SessionEvents(id: id, queue: queue, events: events), needsSnapshot: false)
            while end == nil {
                switch await iterator.next() {
                case .snapshot(let snapshot): status = snapshot
                case .event: continue
                case .ended(let ended): end = ended
                case nil: throw CancellationError()
                }
            }
            switch end {
            case .completed:
                if let last = try? await queue.status(of: id), last.state == .completed { return last }
                // The session was removed or run again after it had completed.
                status.state = .completed
                return status
            case .failed(let error): throw error
            case .cancelled: throw TransferError(.permanent, .cancelled, "The session \(id) was cancelled.")
            case .removed, nil: throw removedError
            }
        }
    }

    /// Waits until the session has ended, and decodes the server's response to one of the session's items, such as the JSON of a form handler.
    ///
    /// ```swift
    /// struct Created: Decodable, Sendable { var id: Int }
    /// let id = try await session.response(as: Created.self).id
    /// ```
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - position: The position of the item in the session, from 0.
    ///   - decoder: The decoder, for example with another strategy for dates.
    /// - Throws: The errors of ``value``; ``QueueError`` with the code `noSuchSession` if the session was removed after its end; a
    ///   `TransferError` with the code `invalidResponse` if the item has no complete response, or if the response is not JSON of this type.
    public func response<Value: Decodable>(
        as type: Value.Type, ofItem position: Int64 = 0, with decoder: sending JSONDecoder = JSONDecoder()
    ) async throws -> Value {
        _ = try await value
        guard let item = try await queue.items(of: id, from: position, limit: 1).first, item.position == position else {
            throw TransferError(.permanent, .invalidResponse, "The session \(id) has no item \(position).")
        }
        return try item.response(as: type, with: decoder)
    }

    /// The statistics of the session: first the current statistics, then updates. A slow consumer gets only the latest update. The stream
    /// ends when the session ends or is removed, or when the queue shuts down.
    public var progress: AsyncStream<SessionStatistics> {
        let (stream, continuation) = AsyncStream.makeStream(of: SessionStatistics.self, bufferingPolicy: .bufferingNewest(1))
        let events = events
        let task = Task {
            defer { continuation.finish() }
            for await event in events {
                switch event {
                case .snapshot(let status): continuation.yield(status.statistics)
                case .event(let event):
                    if case .progress(_, let statistics) = event.kind { continuation.yield(statistics) }
                case .ended: return
                }
            }
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }

    private func currentStatus() async throws -> SessionStatus {
        do {
            return try await queue.status(of: id)
        } catch let error as QueueError where error.code == .noSuchSession {
            throw removedError
        }
    }

    private var removedError: TransferError { TransferError(.permanent, .cancelled, "The session \(id) was removed.") }
}
