import Locking
import NIOCore
import TransferCore

/// A connection with a request in progress. Other requests and the stopping server can interrupt this request.
final class Connection: Sendable {
    let channel: any Channel
    private let state = Locked(State())

    enum Interruption {
        /// Another request for the same upload.
        case request
        case serverShutdown
    }

    private struct State {
        var interruption: Interruption?
        var isFinished = false
    }

    /// The maximum number of bytes that are received after an interruption. The socket buffers of both ends can't hold more bytes, so a client that
    /// sends more is still connected.
    private static let drainLimit: Int64 = 8 * 1024 * 1024

    init(_ channel: any Channel) {
        self.channel = channel
    }

    var isInterrupted: Bool { interruption != nil }

    var interruption: Interruption? { state.withLock { $0.interruption } }

    var isOpen: Bool { channel.isActive }

    /// `http://127.0.0.1:port`, the local address of the connection.
    var origin: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    /// Marks the request as finished, so that it can't be interrupted anymore.
    func finish() {
        state.withLock { $0.isFinished = true }
    }

    /// Interrupts the request: ends its body once no bytes have arrived for a tenth of a second, or once more than ``drainLimit`` bytes
    /// have arrived since the interruption.
    ///
    /// The delay lets the client's system send the remaining bytes of a connection that the client has already closed.
    func interrupt(for reason: Interruption) {
        let isFirst = state.withLock { state in
            defer { state.interruption = reason }
            return state.interruption == nil
        }
        guard isFirst else { return }
        channel.eventLoop.execute { [self] in
            if let received { endWhenSilent(received, since: received) }
        }
    }

    private func endWhenSilent(_ received: Int64, since start: Int64) {
        channel.eventLoop.scheduleTask(in: .milliseconds(100)) { [self] in
            guard !state.withLock({ $0.isFinished }), let now = self.received else { return }
            // Unread bytes mean that this process is slow, not that the client is silent. The request gets all read bytes before its body ends.
            if now == received && !channel.isReadable || now - start > Self.drainLimit {
                channel.close(mode: .input, promise: nil)
            } else {
                endWhenSilent(now, since: start)
            }
        }
    }

    /// The number of body bytes read from the connection, handled or not; nil if the connection is closed. Read this property only on the event loop.
    private var received: Int64? {
        try? channel.pipeline.syncOperations.handler(type: ArrivalHandler.self).received
    }

    /// Closes the connection without a response.
    func close() async {
        // The call fails only if the connection is already closed.
        try? await channel.close()
    }
}
