import NIOPosix

extension RequestHandler {
    /// POST: makes an upload, and takes the bytes that come along (tus 1.0.0, "Creation" and "Creation With Upload").
    @concurrent
    func create(_ exchange: Exchange) async throws -> Response? {
        guard let text = exchange["Upload-Length"], let length = Int64(digits: text) else {
            return Response(400, body: "Upload-Length has to be a number of bytes.\n")
        }
        if let maximum = options.maximumSize, length > maximum {
            return Response(413, [("Tus-Max-Size", String(maximum))], body: "The upload is larger than \(maximum) bytes.\n")
        }
        let header = exchange["Upload-Metadata"]
        guard let metadata = header.map(UploadMetadata.decode) ?? [:] else {
            return Response(400, body: "Upload-Metadata has to be pairs of a key and a base64 value, separated by commas.\n")
        }
        if !exchange.isBodyAtEnd, let refusal = refusal(of: exchange, at: 0, length: length) { return refusal }
        let upload: Upload
        do {
            upload = try await NIOThreadPool.singleton.runIfActive { [store] in
                try store.create(length: length, metadata: metadata, header: header)
            }
        } catch {
            return Response(500, body: "The upload can't be made: \(error).\n")
        }
        let location = (options.usesRelativeLocation ? "" : exchange.connection.origin) + Self.root + upload.id
        let entry = recorder.begin("POST", offset: 0, for: upload)
        if exchange.isBodyAtEnd {
            recorder.answered(201, to: entry)
            return Response(201, [("Location", location), ("Upload-Offset", "0")])
        }
        await upload.acquire(for: exchange.connection)
        defer { upload.release() }
        guard var response = try await take(exchange, into: upload, entry) else { return nil }
        if response.status == 204 { response.status = 201 }
        response.headers.append((name: "Location", value: location))
        recorder.answered(response.status, to: entry)
        return response
    }
}
