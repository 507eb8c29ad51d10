import Foundation
import SystemPackage
import TransferCore
public import TransferKit

extension RemoteTransferQueue {
    /// New events, starting with the first call of the iterator's `next()`.
    public var events: RemoteQueueEvents { RemoteQueueEvents(queue: self, since: nil) }

    /// The stored events after a revision, followed by new events, like `TransferQueue.events(since:)`.
    ///
    /// A restarted app passes the revision of the last event that it received, and gets the later events from the queue's change log.
    ///
    /// - Parameter revision: The revision of the last known event; 0 for all events in the change log.
    public func events(since revision: UInt64) -> RemoteQueueEvents { RemoteQueueEvents(queue: self, since: revision) }

    /// Returns the events of ``events(since:)`` as an `AsyncThrowingStream`.
    public func eventStream(since revision: UInt64) -> AsyncThrowingStream<QueueEvent, any Error> {
        AsyncThrowingStream(events(since: revision))
    }

    /// Waits for a session to end, and returns its final status.
    ///
    /// - Throws: The session's `TransferError` if the session failed, or a `TransferError` with the code `cancelled` if the session was
    ///   cancelled. ``/TransferKit/QueueError`` with the code `noSuchSession` if the session was removed, `ownerLost` if the queue's owner shuts
    ///   down the queue first, `ownerUnreachable` if there is no owner, or `ownerSilent` or `tooManySubscribers`. `CancellationError` if the task
    ///   is cancelled.
    public func value(of id: SessionID) async throws -> SessionStatus {
        // The subscription precedes the first read, so that the end can't be missed.
        var iterator = events.makeAsyncIterator()
        try await iterator.begin()
        return try await Self.value(of: id, status: { try await status(of: id) }, nextEvent: { try await iterator.next() })
    }

    /// Reads a session after each of its events, except progress, until the session has ended.
    ///
    /// - Parameters:
    ///   - status: Returns the session's status; throws the code `noSuchSession` after the session was removed.
    ///   - nextEvent: Returns the next event; nil at the end of the events.
    package static func value(
        of id: SessionID, status: () async throws -> SessionStatus, nextEvent: () async throws -> QueueEvent?
    ) async throws -> SessionStatus {
        let cancellation = TransferError(.permanent, .cancelled, "The session \(id) was cancelled.")
        var last = try await status()
        while true {
            switch last.state {
            case .completed: return last
            case .failed: throw last.error ?? TransferError(.permanent, .internalFailure, "The session \(id) failed without a reason.")
            case .cancelled: throw cancellation
            case .waiting, .running, .paused, .held, .draft: break
            }
            guard let event = try await nextEvent() else { throw QueueError.lost }
            let isGap = if case .gap = event.kind { true } else { false }
            guard isGap || event.concerns(id), !event.isProgress else { continue }
            do {
                last = try await status()
            } catch let removal as QueueError where removal.code == .noSuchSession {
                // The queue's retention can remove a session as soon as the session ends. Then only the event contains the result.
                switch event.kind {
                case .completed: last.state = .completed
                case .failed(_, let error): throw error
                case .cancelled: throw cancellation
                case .removed, .draftsRemoved, .gap: throw removal
                default: continue
                }
            }
        }
    }
}

/// The events of a queue in another process, for one consumer.
///
/// The subscription begins when the consumer requests the first event, and ends when the queue's owner shuts down the queue. The owner
/// buffers events for a slow consumer, with the same limit as ``/TransferKit/QueueEvents``. After a broken connection, the iterator
/// reconnects and resumes after the last received event.
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

        /// Returns the next event; nil after the owner has shut down the queue.
        ///
        /// - Throws: ``/TransferKit/QueueError`` with the code `ownerUnreachable` if there is no owner, or if the owner exited without shutting down
        ///   the queue; `ownerSilent` if the owner does not respond in time; or a code of the owner, for example `tooManySubscribers`.
        ///   `CancellationError` if the task is cancelled.
        public mutating func next() async throws -> QueueEvent? {
            while !hasEnded {
                try await begin()
                guard let connection else { return nil }
                // After an error, the next call subscribes again.
                self.connection = nil
                guard let message = try await Self.read(EventMessage.self, from: connection) else { continue }
                self.connection = connection
                hasEnded = message.event == nil
                last = message.event?.revision ?? last
                return message.event
            }
            return nil
        }

        /// Like ``next()``.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> QueueEvent? {
            try await next()
        }

        /// Subscribes, unless already subscribed. After this call, the owner buffers new events for the iterator. Throws the same errors as
        /// ``next()``.
        mutating func begin() async throws {
            while connection == nil, !hasEnded {
                let connection = try await queue.begin(.events(since: last))
                guard let response = try await Self.read(ControlResponse<UInt64>.self, from: connection) else { continue }
                if let error = response.error { throw error }
                // If the connection breaks, the next connection resumes after this revision.
                last = last ?? response.value
                self.connection = connection
            }
        }

        /// Receives a message. If the connection has broken, returns nil after a delay, so that the caller reconnects.
        private static func read<Message: Decodable & Sendable>(
            _ type: Message.Type, from connection: ControlConnection
        ) async throws -> Message? {
            do {
                return try await withTaskCancellationHandler {
                    try await connection.read(type)
                } onCancel: {
                    connection.interrupt()
                }
            } catch {
                try Task.checkCancellation()
                guard (error as? QueueError)?.code == .ownerLost else { throw error }
                try await Task.sleep(for: RemoteTransferQueue.retryInterval)
                return nil
            }
        }
    }

    /// Creates an iterator with its own connection.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
