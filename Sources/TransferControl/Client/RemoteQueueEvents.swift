import Foundation
import SystemPackage
import TransferCore
public import TransferKit

extension RemoteTransferQueue {
    /// New events, starting with the first call of the iterator's `next()`.
    public var events: RemoteQueueEvents { RemoteQueueEvents(queue: self, since: nil) }

    /// The recorded events after a revision, followed by new events, like `TransferQueue.events(since:)`.
    ///
    /// A restarted app passes the last revision that it received, and gets the later events from the change log.
    ///
    /// - Parameter revision: The revision of the last known event; 0 for all events in the log.
    public func events(since revision: UInt64) -> RemoteQueueEvents { RemoteQueueEvents(queue: self, since: revision) }

    /// Waits for a session to end, and returns its final status.
    ///
    /// - Throws: The session's `TransferError` if the session failed, or a `TransferError` with the code `cancelled` if the session was
    ///   cancelled. ``/TransferKit/QueueError`` with the code `noSuchSession` if the session was removed, or with `ownerUnreachable` or
    ///   `ownerLost` if the owner exits first.
    public func value(of id: SessionID) async throws -> SessionStatus {
        var iterator = events.makeAsyncIterator()
        try await iterator.begin()
        while true {
            let status = try await status(of: id)
            switch status.state {
            case .completed: return status
            case .failed, .cancelled:
                throw status.error.flatMap { status.state == .failed ? $0 : nil }
                    ?? TransferError(.permanent, .cancelled, "The session \(id) was cancelled.")
            case .waiting, .running, .paused, .held, .draft: break
            }
            repeat {
                guard let event = try await iterator.next() else { throw QueueError.lost }
                if event.isProgress { continue }
                if event.concerns(id) { break }
                if case .gap = event.kind { break }
            } while true
        }
    }
}

/// The events of a queue in another process, for one consumer.
///
/// The subscription begins when the consumer requests the first event, and ends when the owner shuts down the queue. The owner buffers events
/// for a slow consumer, with the same limit as ``/TransferKit/QueueEvents``. After a broken connection, the iterator reconnects and resumes
/// after the last received event.
public struct RemoteQueueEvents: AsyncSequence, Sendable {
    let queue: RemoteTransferQueue
    let since: UInt64?

    /// The iterator of the events.
    public struct AsyncIterator: AsyncIteratorProtocol, Sendable {
        private let queue: RemoteTransferQueue
        private var last: UInt64?
        private var connection: ControlConnection?
        private var hasEnded = false

        init(_ events: RemoteQueueEvents) {
            queue = events.queue
            last = events.since
        }

        /// The next event; nil at the end.
        ///
        /// - Throws: ``/TransferKit/QueueError``, for example with the code `ownerUnreachable` if the owner exited without shutting down the queue, or
        ///   `tooManySubscribers`, or `CancellationError` if the task is cancelled.
        public mutating func next() async throws -> QueueEvent? {
            guard !hasEnded else { return nil }
            while true {
                try await begin()
                guard let connection else { return nil }
                do {
                    let message = try await withTaskCancellationHandler {
                        try await connection.read(EventMessage.self)
                    } onCancel: {
                        connection.interrupt()
                    }
                    hasEnded = message.event == nil
                    last = message.event?.revision ?? last
                    return message.event
                } catch {
                    self.connection = nil
                    try Task.checkCancellation()
                    guard (error as? QueueError)?.code == .ownerLost else { throw error }
                }
            }
        }

        /// The next event; nil at the end. Throws the same errors as ``next()``.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> QueueEvent? {
            try await next()
        }

        /// Subscribes, unless already subscribed. From this call on, the owner keeps events for the iterator.
        mutating func begin() async throws {
            guard connection == nil, !hasEnded else { return }
            let connection = try await queue.begin(.events(since: last))
            let response = try await withTaskCancellationHandler {
                try await connection.read(ControlResponse<UInt64>.self)
            } onCancel: {
                connection.interrupt()
            }
            if let error = response.error { throw error }
            // If the connection breaks, the next connection resumes after this revision.
            self.last = last ?? response.value
            self.connection = connection
        }
    }

    /// Creates an iterator with its own connection.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
