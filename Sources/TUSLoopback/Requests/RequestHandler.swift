import Foundation
import NIOCore
import NIOPosix
import TransferCore

final class RequestHandler: Sendable {
    static let tusVersion = "1.0.0"
    /// The path of the creation URL, and the prefix of the paths of all uploads.
    static let root = "/files/"

    let store: UploadStore
    let options: LoopbackOptions
    let faults: FaultScript
    let recorder: StatisticsRecorder
    let now: @Sendable () -> Date
    let arrivalOrder = ArrivalOrder()

    /// The maximum size, in bytes, of a body that the server drains to keep the connection open after an early response.
    private static let maximumDrainedSize: Int64 = 1024 * 1024

    init(
        store: UploadStore, options: LoopbackOptions, faults: FaultScript, recorder: StatisticsRecorder, now: @escaping @Sendable () -> Date
    ) {
        self.store = store
        self.options = options
        self.faults = faults
        self.recorder = recorder
        self.now = now
    }

    /// Handles one request.
    ///
    /// - Throws: An error if the connection must be closed.
    @concurrent
    func serve(_ exchange: Exchange) async throws {
        defer {
            exchange.connection.finish()
            arrivalOrder.endHandling(on: exchange.connection.channel)
        }
        guard let response = try await response(to: exchange) else {
            await exchange.connection.close()
            throw ConnectionEnded()
        }
        arrivalOrder.beginHandling(on: exchange.connection.channel)
        let canDrain = exchange.isBodyAtEnd || (exchange.bodyLength ?? .max) <= Self.maximumDrainedSize
        let staysOpen = canDrain && !exchange.isAwaitingBody && !exchange.connection.isInterrupted
        try await exchange.send(response, closing: !staysOpen)
        if !exchange.isAwaitingBody { try await discardBody(of: exchange) }
        if !staysOpen { throw ConnectionEnded() }
    }

    /// Reads the remaining bytes of a body. Closing a connection with unread bytes would reset it, and the client could lose the response (RFC 9112,
    /// section 9.6).
    @concurrent
    private func discardBody(of exchange: Exchange) async throws(ConnectionEnded) {
        do {
            while let bytes = try await exchange.next() { recorder.discarded(Int64(bytes.readableBytes)) }
        } catch {
            // After any other type of error, Hummingbird would send a second response.
            throw ConnectionEnded()
        }
    }

    /// Returns the response; nil if the connection must be closed without a response.
    @concurrent
    private func response(to exchange: Exchange) async throws -> Response? {
        // Without this check, a web site could resolve its host name to a loopback address, and its pages could read the uploads (DNS rebinding).
        guard exchange.hasLoopbackHost else {
            return Response(421, body: "The host must be a loopback address or localhost.\n")
        }
        if exchange.path == "/statistics" { return statistics(exchange) }
        recorder.count(exchange.method)
        let injected = faults.takeResponse(for: exchange.method)
        let isTUS = options.dialect == .tus
        let result: Response? =
            if let injected { injected } else if isTUS { try await dispatch(exchange) } else { try await dispatchResource(exchange) }
        guard var response = result else { return nil }
        if !isTUS {
            for (name, value) in draftVersionHeaders { response.headers.append((name: name, value: value)) }
        } else if !response.headers.contains(where: { $0.name.lowercased() == "tus-resumable" }) {
            response.headers.append((name: "Tus-Resumable", value: Self.tusVersion))
        }
        // The client needs this server's time to interpret the expiry of uploads.
        response.headers.append((name: "Date", value: now().httpDate))
        return response
    }

    @concurrent
    private func dispatch(_ exchange: Exchange) async throws -> Response? {
        guard exchange.path.hasPrefix(Self.root) || exchange.path + "/" == Self.root else {
            return Response(404, body: "Not found. Create uploads at \(Self.root).\n")
        }
        if exchange.method == "OPTIONS" { return optionsResponse() }
        // A download is a plain GET, which needs no headers of tus.
        guard exchange.method == "GET" || exchange["Tus-Resumable"] == Self.tusVersion else {
            return Response(412, [("Tus-Version", Self.tusVersion)], body: "Tus-Resumable must be \(Self.tusVersion).\n")
        }
        let id = String(exchange.path.dropFirst(Self.root.count))
        if id.isEmpty {
            guard exchange.method == "POST" else { return Response(405, [("Allow", "OPTIONS, POST")]) }
            return try await create(exchange)
        }
        switch store.lookUp(id) {
        case .unknown: return Response(404, noStore, body: "There is no such upload.\n")
        case .terminated: return Response(410, noStore, body: "The upload was terminated.\n")
        case .found(let upload):
            if isExpired(upload) { return await expire(upload) }
            return try await handle(exchange, for: upload)
        }
    }

    /// Whether the upload has expired. The server may not have removed it yet.
    func isExpired(_ upload: Upload) -> Bool {
        upload.record.expires.map { Double($0) <= now().timeIntervalSince1970 } ?? false
    }

    func expire(_ upload: Upload) async -> Response {
        await upload.acquire(for: nil)
        defer { upload.release() }
        if case .found = store.lookUp(upload.id) {
            // Ignore errors, because the response is the same if the files can't be removed.
            try? await NIOThreadPool.singleton.runIfActive { [store] in try store.remove(upload) }
        }
        return Response(410, noStore, body: "The upload has expired.\n")
    }

    private var methods: [String] {
        ["HEAD", "PATCH"] + (options.offers(.termination) ? ["DELETE"] : []) + (options.servesDownloads ? ["GET"] : [])
    }

    /// Handles a request for an upload. All requests except GET have exclusive access to the upload.
    @concurrent
    private func handle(_ exchange: Exchange, for upload: Upload) async throws -> Response? {
        let hasContent = exchange.method == "PATCH"
        guard methods.contains(exchange.method) else {
            return Response(405, [("Allow", (["OPTIONS"] + methods).joined(separator: ", "))])
        }
        if upload.record.parts != nil, !upload.isComplete { await assemble(upload) }
        // A GET needs no exclusive access, because complete uploads never change and incomplete uploads are not sent.
        if exchange.method == "GET" { return await download(upload, exchange) }
        let connection = exchange.connection
        await arrivalOrder.waitForEarlierRequests(exchange.path, hasContent: hasContent, on: connection.channel)
        await upload.acquire(for: hasContent ? connection : nil) { arrivalOrder.beginHandling(on: connection.channel) }
        defer { upload.release() }
        guard case .found = store.lookUp(upload.id) else { return Response(410, noStore) }
        switch exchange.method {
        case "HEAD": return head(upload)
        case "PATCH": return try await extend(upload, exchange)
        default: return await terminate(upload)
        }
    }

    let noStore = [("Cache-Control", "no-store")]

    private func optionsResponse() -> Response {
        var headers = [("Tus-Version", Self.tusVersion), ("Tus-Extension", options.advertised)]
        if options.offers(.checksum) { headers.append(("Tus-Checksum-Algorithm", TUSChecksumAlgorithm.advertised)) }
        if let maximum = options.maximumSize { headers.append(("Tus-Max-Size", String(maximum))) }
        return Response(204, headers)
    }

    private func statistics(_ exchange: Exchange) -> Response {
        guard exchange.method == "GET" else { return Response(405, [("Allow", "GET")]) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(recorder.current) else { return Response(500) }
        return Response(200, [("Content-Type", "application/json")] + noStore, body: String(decoding: data, as: UTF8.self) + "\n")
    }

    private func head(_ upload: Upload) -> Response {
        let offset = upload.offset
        recorder.responded(200, to: recorder.begin("HEAD", offset: offset, for: upload))
        let record = upload.record
        var headers = noStore + expiry(of: upload)
        // An unfinished final upload has no offset (tus 1.0.0, "Upload-Concat").
        if record.parts == nil || upload.isComplete { headers.append(("Upload-Offset", String(offset))) }
        if let length = record.length {
            headers.append(("Upload-Length", String(length)))
        } else if record.parts == nil {
            headers.append(("Upload-Defer-Length", "1"))
        }
        if let metadata = record.uploadMetadata { headers.append(("Upload-Metadata", metadata)) }
        if let concat = record.uploadConcat { headers.append(("Upload-Concat", concat)) }
        return Response(200, headers)
    }

    /// DELETE: removes an upload (the tus extension *termination*, or the cancellation of the IETF protocol).
    func terminate(_ upload: Upload) async -> Response {
        let requestPosition = recorder.begin("DELETE", offset: nil, for: upload)
        let response: Response
        do {
            try await NIOThreadPool.singleton.runIfActive { [store] in try store.remove(upload) }
            response = Response(204)
        } catch {
            response = Response(500, body: "Cannot remove the upload: \(error).\n")
        }
        recorder.responded(response.status, to: requestPosition)
        return response
    }
}
