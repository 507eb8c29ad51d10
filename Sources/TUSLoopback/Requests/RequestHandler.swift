import Foundation
import TransferCore

/// Answers requests, each on its connection's thread.
final class RequestHandler: Sendable {
    static let version = "1.0.0"
    static let extensions = "creation,creation-with-upload,termination"
    /// The path of the creation URL, and the beginning of every upload's.
    static let root = "/files/"

    let store: UploadStore
    let options: LoopbackOptions
    let faults: FaultScript
    let recorder: StatisticsRecorder
    let order = ArrivalOrder()
    /// `http://127.0.0.1:port`.
    let origin: String

    init(store: UploadStore, options: LoopbackOptions, faults: FaultScript, recorder: StatisticsRecorder, origin: String) {
        self.store = store
        self.options = options
        self.faults = faults
        self.recorder = recorder
        self.origin = origin
    }

    /// Treats one request.
    ///
    /// - Returns: The answer, or nil if the connection is to be closed without one.
    func answer(_ head: RequestHead, _ body: RequestBody, on connection: Connection) -> Response? {
        if head.path == "/statistics" { return statistics(head) }
        recorder.count(head.method)
        guard var response = faults.takeAnswer(for: head.method) ?? dispatch(head, body, connection) else { return nil }
        if !response.headers.contains(where: { $0.name.lowercased() == "tus-resumable" }) {
            response.headers.append((name: "Tus-Resumable", value: Self.version))
        }
        return response
    }

    private func dispatch(_ head: RequestHead, _ body: RequestBody, _ connection: Connection) -> Response? {
        guard head.path.hasPrefix(Self.root) || head.path + "/" == Self.root else {
            return Response(404, body: "Nothing is here; uploads are made at \(Self.root).\n")
        }
        if head.method == "OPTIONS" { return describe() }
        guard head["Tus-Resumable"] == Self.version else {
            return Response(412, [("Tus-Version", Self.version)], body: "Tus-Resumable has to be \(Self.version).\n")
        }
        let id = String(head.path.dropFirst(Self.root.count))
        if id.isEmpty {
            guard head.method == "POST" else { return Response(405, [("Allow", "OPTIONS, POST")]) }
            return create(head, body, connection)
        }
        switch store.lookUp(id) {
        case .unknown: return Response(404, noStore, body: "There is no such upload.\n")
        case .terminated: return Response(410, noStore, body: "The upload was terminated.\n")
        case .found(let upload):
            switch head.method {
            case "HEAD": return hold(upload, connection) { tell(upload) }
            case "PATCH": return hold(upload, connection, bringsContent: true) { extend(upload, head, body, connection) }
            case "DELETE": return hold(upload, connection) { terminate(upload) }
            default: return Response(405, [("Allow", "OPTIONS, HEAD, PATCH, DELETE")])
            }
        }
    }

    /// Does something while no other connection touches the upload.
    private func hold(_ upload: Upload, _ connection: Connection, bringsContent: Bool = false, _ body: () -> Response?) -> Response? {
        order.settle(connection.number, bringsContent: bringsContent)
        upload.acquire(for: connection)
        defer { upload.release() }
        order.set(.handling, for: connection.number)
        // It may have been terminated meanwhile.
        guard case .found = store.lookUp(upload.id) else { return Response(410, noStore) }
        return body()
    }

    let noStore = [("Cache-Control", "no-store")]

    private func describe() -> Response {
        var headers = [("Tus-Version", Self.version), ("Tus-Extension", Self.extensions)]
        if let maximum = options.maximumSize { headers.append(("Tus-Max-Size", String(maximum))) }
        return Response(204, headers)
    }

    private func statistics(_ head: RequestHead) -> Response {
        guard head.method == "GET" else { return Response(405, [("Allow", "GET")]) }
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(recorder.current) else { return Response(500) }
        return Response(200, [("Content-Type", "application/json")] + noStore, body: String(decoding: data, as: UTF8.self) + "\n")
    }

    private func tell(_ upload: Upload) -> Response {
        let offset = upload.offset
        recorder.answered(200, to: recorder.begin("HEAD", offset: offset, for: upload))
        var headers = noStore + [("Upload-Offset", String(offset)), ("Upload-Length", String(upload.record.length))]
        if let metadata = upload.record.uploadMetadata { headers.append(("Upload-Metadata", metadata)) }
        return Response(200, headers)
    }

    private func terminate(_ upload: Upload) -> Response {
        let entry = recorder.begin("DELETE", offset: nil, for: upload)
        let response: Response
        do {
            try store.remove(upload)
            response = Response(204)
        } catch {
            response = Response(500, body: "The upload can't be removed: \(error).\n")
        }
        recorder.answered(response.status, to: entry)
        return response
    }
}
