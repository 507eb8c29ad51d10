import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Ends the socket itself when its channel closes, a connection's or the listener's.
///
/// Closing only gives back this process's descriptor. A child process that was started meanwhile has a copy, as NIO's are inherited, and would
/// keep a stopped server's port open, or a client waiting for the end of its connection. shutdown(2) ends a socket whoever has copies.
final class SocketEndHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = Never
    typealias OutboundIn = Never

    private var isInputClosed = false

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed { isInputClosed = true }
        context.fireUserInboundEventTriggered(event)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        // After the input, NIO takes the output's close for one of all; otherwise it shuts the output down by itself.
        if mode == .all || mode == .output && isInputClosed {
            // It throws only if the channel is closed already.
            try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { descriptor in
                _ = shutdown(descriptor, CInt(SHUT_RDWR))
            }
        }
        context.close(mode: mode, promise: promise)
    }
}
