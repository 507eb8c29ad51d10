import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Shuts down the socket when its channel closes, for connections and the listener.
///
/// Closing releases only this process's descriptor. NIO's descriptors are inherited, so a child process may have a copy, which would keep the port of
/// a stopped server open, or a client waiting for the end of its connection. shutdown(2) also affects copies.
final class SocketEndHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = Never
    typealias OutboundIn = Never

    private var isInputClosed = false

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed { isInputClosed = true }
        context.fireUserInboundEventTriggered(event)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        // After the input is closed, NIO treats closing the output as closing all; otherwise it shuts down the output itself.
        if mode == .all || mode == .output && isInputClosed {
            // Throws only if the channel is closed already.
            try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { descriptor in
                _ = shutdown(descriptor, CInt(SHUT_RDWR))
            }
        }
        context.close(mode: mode, promise: promise)
    }
}
