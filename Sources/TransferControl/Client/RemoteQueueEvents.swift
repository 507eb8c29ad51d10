import Foundation
import SystemPackage
import TransferCore
public import TransferKit

extension RemoteTransferQueue {
    /// What happens from now on: from the first time that the iterator is asked.
    public var events: RemoteQueueEvents { RemoteQueueEvents(queue: self, since: nil) }

    /// What happened after an event, from the change log, and then what happens from now on; as `TransferQueue.events(since:)`.
    ///
    /// An app that comes back passes the last revision that it knows, and finds what happened while it was away.
    ///
    /// - Parameter revision: The last event that the reader knows; 0 for all that the log holds.
    public func events(since revision: UInt64) -> RemoteQueueEvents { RemoteQueueEvents(queue: self, since: revision) }

    /// Waits for the end of a session, and returns its last snapshot.
    ///
    /// - Throws: The session's `TransferError` if it failed, one with the code `cancelled` if it was cancelled; ``QueueError`` with the code
    ///   `noSuchSession` once it is removed, or as for any call: an owner that ended does not bring the session to its end.
    public func value(of id: SessionID) async throws -> SessionStatus {
        var iterator = events.makeAsyncIterator()
        try await iterator.begin()
        while true {
            let status = try await session(id)
            switch status.state {
            case .completed: return status
            case .failed, .cancelled:
                throw status.error.flatMap { status.state == .failed ? $0 : nil }
                    ?? TransferError(.permanent, .cancelled, "The session \(id) was cancelled.")
            case .waiting, .running, .paused, .held: break
            }
            repeat {
                guard let event = try await iterator.next() else { throw QueueError.lost }
                if case .progress = event.kind { continue }
                if event.concerns(id) { break }
                if case .gap = event.kind { break }
            } while true
        }
    }
}

/// The events of a queue in another process, for one consumer.
///
/// Begins when it is asked for the first event. While a consumer takes its time, the owner keeps 4,096 events, and the change log more; a
/// connection that breaks meanwhile is made anew, and goes on after the last event. Ends when the owner shuts the queue down.
public struct RemoteQueueEvents: AsyncSequence, Sendable {
    let queue: RemoteTransferQueue
    let since: UInt64?

    /// Takes the events one by one.
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
        /// - Throws: ``QueueError`` with the code `ownerUnreachable` if the owner is gone without having shut the queue down;
        ///   `CancellationError`.
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

        /// The next event; nil at the end.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> QueueEvent? {
            try await next()
        }

        /// Subscribes, if that is not done: what happens after this returns is told.
        mutating func begin() async throws {
            guard connection == nil, !hasEnded else { return }
            let connection = try await queue.begin(.events(since: last))
            let answer = try await withTaskCancellationHandler {
                try await connection.read(ControlAnswer<UInt64>.self)
            } onCancel: {
                connection.interrupt()
            }
            if let error = answer.error { throw error }
            // Known from now on, so that a connection that is made anew goes on from here.
            self.last = last ?? answer.value
            self.connection = connection
        }
    }

    /// Begins to take events; each iterator has a connection of its own.
    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
