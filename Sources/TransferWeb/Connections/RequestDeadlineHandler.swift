import HTTPTypes
import NIOCore
import NIOHTTPTypes

/// Closes a connection if its client sends a request too slowly, sends no request for too long, or no longer reads an event stream.
final class RequestDeadlineHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPRequestPart
    typealias OutboundIn = HTTPResponsePart

    private let limits: WebLimits
    private var timer: Scheduled<Void>?
    private var requests = 0
    private var responses = 0
    /// Whether the response in progress is a stream of events.
    private var isStream = false

    init(_ limits: WebLimits) { self.limits = limits }

    func handlerAdded(context: ChannelHandlerContext) { close(context, after: .seconds(limits.headTime)) }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        context.fireChannelInactive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head:
            requests += 1
            close(context, after: .seconds(limits.bodyTime))
        case .body: break
        case .end: timer?.cancel()
        }
        context.fireChannelRead(data)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(let head): isStream = head.headerFields[.contentType] == "text/event-stream"
        case .body: break
        case .end:
            responses += 1
            if responses >= requests { close(context, after: .seconds(limits.idleTime)) }
        }
        context.write(data, promise: promise)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // A client that closes its sending side no longer reads the events. Without this check, the server would notice this only when it
        // sends the next event.
        if isStream, case .inputClosed? = event as? ChannelEvent { context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    private func close(_ context: ChannelHandlerContext, after time: TimeAmount) {
        timer?.cancel()
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
    }
}
