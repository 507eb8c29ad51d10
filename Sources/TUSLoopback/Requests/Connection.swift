import Locking
import NIOCore
import TransferCore

/// A connection with a request in progress, which other requests may interrupt.
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

    /// The maximum number of bytes received after an interruption. More than the socket buffers of both ends hold, so a client that sends
    /// more is still alive.
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

    /// Marks the request as answered, so that it can no longer be interrupted.
    func finish() {
        state.withLock { $0.isFinished = true }
    }

    /// Ends the request's body after a tenth of a second without more bytes.
    ///
    /// The delay lets the client's system send the remaining bytes of a connection that its program has closed.
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
            // Unread bytes mean that this process was slow, not that the client is silent. Read bytes reach the request before the end.
            if now == received && !channel.isReadable || now - start > Self.drainLimit {
                channel.close(mode: .input, promise: nil)
            } else {
                endLater(now, since: start)
            }
        }
    }

    /// The number of body bytes read from the connection, handled or not; nil if it is closed. On the event loop only.
    private var received: Int64? {
        try? channel.pipeline.syncOperations.handler(type: ArrivalHandler.self).received
    }

    /// Closes the connection without a response.
    func close() async {
        // Fails only if it is closed already.
        try? await channel.close()
    }
}
