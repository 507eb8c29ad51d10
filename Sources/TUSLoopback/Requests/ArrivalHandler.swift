import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Reports the requests of one connection to ``ArrivalOrder`` as soon as NIO has read them. The tasks that handle the requests run later.
final class ArrivalHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart

    private let order: ArrivalOrder
    /// The number of body bytes that NIO has read from the connection.
    private(set) var received: Int64 = 0

    init(_ order: ArrivalOrder) {
        self.order = order
    }

    func handlerAdded(context: ChannelHandlerContext) {
        order.join(context.channel)
        // Four times NIO's default maximum, because each read leads to one write. If setting the option fails, reads are smaller.
        let allocator = AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 4096, maximum: 256 * 1024)
        try? context.channel.syncOptions?.setOption(.recvAllocator, value: allocator)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        order.leave(context.channel)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): order.arrived(head.targetPath, hasContent: head.tusMethod == "PATCH", on: context.channel)
        case .body(let bytes): received += Int64(bytes.readableBytes)
        case .end(let trailers): order.ended(with: trailers, on: context.channel)
        }
        context.fireChannelRead(data)
    }
}

extension HTTPRequest {
    /// The target without its query.
    var targetPath: String { String((path ?? "").prefix { $0 != "?" }) }

    /// The method, or its override by clients that can't send PATCH or DELETE (tus 1.0.0, "X-HTTP-Method-Override").
    var tusMethod: String { HTTPField.Name("X-HTTP-Method-Override").flatMap { headerFields[$0] } ?? method.rawValue }
}
