import TransferCore

/// A handle of a session: small, and valid for as long as the session exists.
public struct TransferSession: Sendable {
    /// The session.
    public let id: SessionID

    /// The queue that it is in.
    public let queue: TransferQueue

    /// A snapshot.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession` once it was removed.
    public var status: SessionStatus {
        get async throws { try await queue.session(id) }
    }

    /// Waits for the end, and returns the last snapshot.
    ///
    /// Needs a queue that runs, now or later. A retry that is due later is no end.
    ///
    /// - Throws: The session's ``TransferError`` if it failed; one with the code `cancelled` if it was removed; `CancellationError` if the task
    ///   was cancelled or the queue was shut down.
    public var value: SessionStatus {
        get async throws {
            var events = queue.events.makeAsyncIterator()
            while true {
                let status: SessionStatus
                do {
                    status = try await queue.session(id)
                } catch let error as QueueError where error.code == .noSuchSession {
                    throw TransferError(.permanent, .cancelled, "The session \(id) was removed.")
                }
                switch status.state {
                case .completed: return status
                case .failed:
                    throw status.error ?? TransferError(.permanent, .internalFailure, "The session \(id) failed without a reason.")
                case .waiting, .running, .paused, .held: break
                case .cancelled: throw TransferError(.permanent, .cancelled, "The session \(id) was cancelled.")
                }
                repeat {
                    guard let event = await events.next() else { throw CancellationError() }
                    if case .gap = event.kind { break }
                    if event.concerns(id), !event.isProgress { break }
                } while true
            }
        }
    }

    /// The figures as they change: the present first; ends with the session's end or removal.
    public var progress: AsyncStream<SessionStatistics> {
        let (stream, continuation) = AsyncStream.makeStream(of: SessionStatistics.self, bufferingPolicy: .bufferingNewest(1))
        let (id, queue, events) = (id, queue, queue.events)
        let task = Task {
            defer { continuation.finish() }
            guard let present = try? await queue.session(id) else { return }
            continuation.yield(present.statistics)
            guard !present.state.isEnded else { return }
            for await event in events {
                switch event.kind {
                case .progress(id, let statistics):
                    continuation.yield(statistics)
                case .completed(id), .failed(id, _):
                    return
                case .removed(let ids, _) where ids.contains(id), .cancelled(let ids) where ids.contains(id):
                    return
                case .gap:
                    // The end may be among what was missed.
                    guard let present = try? await queue.session(id) else { return }
                    continuation.yield(present.statistics)
                    guard !present.state.isEnded else { return }
                default:
                    continue
                }
            }
        }
        continuation.onTermination = { _ in task.cancel() }
        return stream
    }

    /// Removes the session; see ``TransferQueue/remove(_:)-([SessionID])``.
    public func remove() async throws {
        try await queue.remove(id)
    }
}
