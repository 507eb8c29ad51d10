import NIOCore
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A connection whose request is being treated, as seen by other requests: they may end it.
final class Connection: Sendable {
    private let channel: any Channel
    private let isInterruptedState = Locked(false)

    init(_ channel: any Channel) {
        self.channel = channel
    }

    /// Whether another request or the end of the server wants this connection's request to end.
    var isInterrupted: Bool { isInterruptedState.withLock { $0 } }

    /// `http://127.0.0.1:port`, where the client reached the server.
    var origin: String { "http://127.0.0.1:\(channel.localAddress?.port ?? 0)" }

    /// Makes the request's body end after what was received.
    func interrupt() {
        isInterruptedState.withLock { $0 = true }
        isStillSending.whenComplete { [channel] result in
            // If the other end has finished, the body ends by itself. Closing would lose what the system has but NIO has not read yet.
            if case .success(false) = result { return }
            channel.close(mode: .input, promise: nil)
        }
    }

    /// Closes the connection without another word.
    func close() async {
        // It fails only if it is closed already.
        try? await channel.close()
    }

    /// False once the other end has closed its side and all that it sent is here.
    private var isStillSending: EventLoopFuture<Bool> {
        guard let options = channel as? any SocketOptionProvider else { return channel.eventLoop.makeSucceededFuture(true) }
        #if canImport(Darwin)
            return options.getTCPConnectionInfo().map { CInt($0.tcpi_state) == TCPS_ESTABLISHED }
        #else
            return options.getTCPInfo().map { Int($0.tcpi_state) == TCP_ESTABLISHED }
        #endif
    }
}
