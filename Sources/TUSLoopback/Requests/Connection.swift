import Locking
import NIOCore
import TransferCore

/// A connection with a request in progress. Other requests can interrupt this request.
final class Connection: Sendable {
    let channel: any Channel
    private let state = Locked(State())

    /// The cause of an interruption.
    enum Interruption {
        /// Another request for the same upload.
        case request
        case serverEnd
    }

    private struct State {
        var interruption: Interruption?
        var isFinished = false
    }

    /// The maximum number of bytes that are received after an interruption. A client that sends more bytes is still connected, because the socket
    /// buffers of both ends contain fewer bytes.
    private static let drainLimit: Int64 = 8 * 1024 * 1024

    init(_ channel: any Channel) {
        self.channel = channel
    }

    /// Whether another request or the stopping server has interrupted this connection's request.
    var isInterrupted: Bool { interruption != nil }

    var interruption: Interruption? { state.withLock { $0.interruption } }

    var isOpen: Bool { channel.isActive }

    /// `http://127.0.0.1:port`, the local address of the connection.
    var origin: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    /// Marks the request as answered. It can then no longer be interrupted.
    func finish() {
        state.withLock { $0.isFinished = true }
    }

    /// Ends the request's body after a tenth of a second without more bytes.
    ///
    /// During the delay, the client's system can send the remaining bytes of a connection that the client has closed.
    func interrupt(for reason: Interruption) {
        let isFirst = state.withLock { state in
            defer { state.interruption = reason }
            return state.interruption == nil
        }
        guard isFirst else { return }
        channel.eventLoop.execute { [self] in
            if let received { endLater(received, since: received) }
        }
    }

    private func endLater(_ received: Int64, since start: Int64) {
        channel.eventLoop.scheduleTask(in: .milliseconds(100)) { [self] in
            guard !state.withLock({ $0.isFinished }), let now = self.received else { return }
            // If there are unread bytes, this process is slow and the client is not silent. The request gets all read bytes before the end.
            if now == received && !channel.isReadable || now - start > Self.drainLimit {
                channel.close(mode: .input, promise: nil)
            } else {
                endLater(now, since: start)
            }
        }
    }

    /// The number of body bytes read from the connection, handled or not; nil if the connection is closed. Read it on the event loop only.
    private var received: Int64? {
        try? channel.pipeline.syncOperations.handler(type: ArrivalHandler.self).received
    }

    /// Closes the connection without a response.
    func close() async {
        // Fails only if the connection is already closed.
        try? await channel.close()
    }
}
