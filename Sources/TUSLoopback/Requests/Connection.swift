import Locking
import NIOCore
import TransferCore

/// A connection whose request is being treated, as seen by other requests: they may end it.
final class Connection: Sendable {
    let channel: any Channel
    private let state = Locked(State())

    /// Who wants the connection's request to end.
    enum Interruption {
        /// Another one for the same upload.
        case request
        case serverEnd
    }

    private struct State {
        var interruption: Interruption?
        var isFinished = false
    }

    /// More than the systems of both ends hold back: a client that sends that much since it was interrupted is alive.
    private static let patience: Int64 = 8 * 1024 * 1024

    init(_ channel: any Channel) {
        self.channel = channel
    }

    /// Whether another request or the end of the server wants this connection's request to end.
    var isInterrupted: Bool { interruption != nil }

    var interruption: Interruption? { state.withLock { $0.interruption } }

    var isOpen: Bool { channel.isActive }

    /// `http://127.0.0.1:port`, where the client reached the server.
    var origin: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    /// Notes that the request is answered, so that nothing is left to interrupt.
    func finish() {
        state.withLock { $0.isFinished = true }
    }

    /// Makes the request's body end once a tenth of a second passes without more of it.
    ///
    /// The while is for what the other end's system still has to send of a connection that its program already closed.
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
            // What lies there unread is no silence: it shows only that this process was slow. What was read reaches the request before the end.
            if now == received && !channel.isReadable || now - start > Self.patience {
                channel.close(mode: .input, promise: nil)
            } else {
                endLater(now, since: start)
            }
        }
    }

    /// How much was read from the connection, whether or not a task has come to it; nil once it is closed. On the event loop only.
    private var received: Int64? {
        try? channel.pipeline.syncOperations.handler(type: ArrivalHandler.self).received
    }

    /// Closes the connection without another word.
    func close() async {
        // It fails only if it is closed already.
        try? await channel.close()
    }
}
