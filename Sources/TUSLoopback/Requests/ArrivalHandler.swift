import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Sees the requests of one connection when NIO has read them, before any task comes to them, and tells ``ArrivalOrder`` of their heads.
final class ArrivalHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias InboundOut = HTTPRequestPart

    private let order: ArrivalOrder
    /// How many bytes of bodies were read.
    private(set) var received: Int64 = 0

    init(_ order: ArrivalOrder) {
        self.order = order
    }

    func handlerAdded(context: ChannelHandlerContext) {
        order.join(context.channel)
        // Four times what NIO reads at once at most by itself, as each piece is a write of its own. Were it to fail, pieces are smaller.
        let allocator = AdaptiveRecvByteBufferAllocator(minimum: 1024, initial: 4096, maximum: 256 * 1024)
        try? context.channel.syncOptions?.setOption(.recvAllocator, value: allocator)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        order.leave(context.channel)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): order.arrived(head.targetPath, bringsContent: head.tusMethod == "PATCH", on: context.channel)
        case .body(let piece): received += Int64(piece.readableBytes)
        case .end(let trailers): order.ended(with: trailers, on: context.channel)
        }
        context.fireChannelRead(data)
    }
}

extension HTTPRequest {
    /// The target without its query.
    var targetPath: String { String((path ?? "").prefix { $0 != "?" }) }

    /// The method, with its override for clients that can't send PATCH or DELETE (tus 1.0.0, "X-HTTP-Method-Override").
    var tusMethod: String { HTTPField.Name("X-HTTP-Method-Override").flatMap { headerFields[$0] } ?? method.rawValue }
}
