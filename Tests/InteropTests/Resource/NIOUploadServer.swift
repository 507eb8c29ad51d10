import Foundation
import HTTPTypes
import Locking
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOResumableUpload
import ScriptedHTTP

/// A small server around `NIOResumableUpload` of swift-nio-extras, which translates resumable uploads (interop versions 3, 5 and 6) into plain
/// requests. The server keeps complete files in memory.
final class NIOUploadServer: Sendable {
    /// Receives the plain requests.
    private final class FileHandler: ChannelInboundHandler {
        typealias InboundIn = HTTPRequestPart
        typealias OutboundOut = HTTPResponsePart

        private let files: Locked<[Data]>
        private var content: Data?

        init(_ files: Locked<[Data]>) {
            self.files = files
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let request): content = request.method == .post ? Data() : nil
            case .body(let bytes): content?.append(contentsOf: bytes.readableBytesView)
            case .end:
                if let content { files.withLock { $0.append(content) } }
                let status: HTTPResponse.Status = content == nil ? .notImplemented : .created
                let response = HTTPResponse(status: status, headerFields: [.contentLength: "0"])
                context.write(wrapOutboundOut(.head(response)), promise: nil)
                context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            }
        }
    }

    /// The port, which stays reserved.
    let reservedPort: ReservedPort
    private let completeFiles = Locked<[Data]>([])
    private let channel: any Channel

    /// - Parameter usesRelativeLocation: Whether the URLs of uploads are relative, for a server behind a proxy.
    init(usesRelativeLocation: Bool = false) async throws {
        reservedPort = try ReservedPort()
        let context = HTTPResumableUploadContext(origin: usesRelativeLocation ? "" : "http://127.0.0.1:\(reservedPort.port)")
        let completeFiles = completeFiles
        // One event loop serves all connections, because an upload can resume over another connection.
        channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton.next())
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.configureHTTPServerPipeline()
                    try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
                    try pipeline.addHandler(HTTPResumableUploadHandler(context: context, handlers: [FileHandler(completeFiles)]))
                }
            }
            .bind(host: "127.0.0.1", port: Int(reservedPort.port)).get()
    }

    var url: String { reservedPort.url("/files") }

    /// The files that arrived completely, in the order of their completion.
    var files: [Data] { completeFiles.withLock { $0 } }

    func stop() async {
        try? await channel.close()
    }
}
