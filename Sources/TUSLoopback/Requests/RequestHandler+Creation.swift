import TransferCore

extension RequestHandler {
    /// POST: makes an upload, and takes the bytes that come along (tus 1.0.0, "Creation" and "Creation With Upload").
    func create(_ head: RequestHead, _ body: RequestBody, _ connection: Connection) -> Response? {
        guard let text = head["Upload-Length"], let length = Int64(digits: text) else {
            return Response(400, body: "Upload-Length has to be a number of bytes.\n")
        }
        if let maximum = options.maximumSize, length > maximum {
            return Response(413, [("Tus-Max-Size", String(maximum))], body: "The upload is larger than \(maximum) bytes.\n")
        }
        // Nobody else knows the upload, so there is no order to keep.
        order.set(.handling, for: connection.number)
        let header = head["Upload-Metadata"]
        guard let metadata = header.map(UploadMetadata.decode) ?? [:] else {
            return Response(400, body: "Upload-Metadata has to be pairs of a key and a base64 value, separated by commas.\n")
        }
        if !body.isAtEnd, let refusal = refusal(of: body, head, at: 0, length: length) { return refusal }
        let upload: Upload
        do {
            upload = try store.create(length: length, metadata: metadata, header: header)
        } catch {
            return Response(500, body: "The upload can't be made: \(error).\n")
        }
        let location = (options.usesRelativeLocation ? "" : origin) + Self.root + upload.id
        let entry = recorder.begin("POST", offset: 0, for: upload)
        if body.isAtEnd {
            recorder.answered(201, to: entry)
            return Response(201, [("Location", location), ("Upload-Offset", "0")])
        }
        upload.acquire(for: connection)
        defer { upload.release() }
        guard var response = take(body, into: upload, connection, entry) else { return nil }
        if response.status == 204 { response.status = 201 }
        response.headers.append((name: "Location", value: location))
        recorder.answered(response.status, to: entry)
        return response
    }
}
