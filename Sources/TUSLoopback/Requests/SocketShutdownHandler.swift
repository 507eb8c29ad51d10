import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Shuts down the socket of a connection or of the listener when its channel closes.
///
/// Child processes inherit copies of NIO's descriptors, and closing a descriptor releases only this process's copy. The other copies would keep the
/// port of a stopped server open, and clients would wait for the end of their connections. shutdown(2) also affects copies.
final class SocketShutdownHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = Never
    typealias OutboundIn = Never

    private var isInputClosed = false

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed { isInputClosed = true }
        context.fireUserInboundEventTriggered(event)
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        // If the input is already closed, NIO closes the whole channel when the output closes. Otherwise NIO shuts down the output.
        if mode == .all || (mode == .output && isInputClosed) {
            // Throws only if the channel is already closed.
            try? context.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { descriptor in
                _ = shutdown(descriptor, CInt(SHUT_RDWR))
            }
        }
        context.close(mode: mode, promise: promise)
    }
}
