import Foundation
import NIOPosix

/// A response that rejects a request.
struct ErrorResponse: Error {
    let response: Response

    init(_ status: Int, _ headers: [(String, String)] = [], because description: String) {
        response = Response(status, headers, body: description + "\n")
    }
}

extension RequestHandler {
    /// POST: creates an upload and stores its content, if any (tus 1.0.0, "Creation" and "Creation With Upload").
    @concurrent
    func create(_ exchange: Exchange) async throws -> Response? {
        let takesContent = !exchange.isBodyAtEnd && options.offers(.creationWithUpload)
        let upload: Upload
        let checksum: ChecksumLocation?
        do {
            let record = try newRecord(for: exchange)
            if takesContent, let errorResponse = errorResponse(of: exchange, at: 0, length: limit(of: record)) { return errorResponse }
            checksum = takesContent ? try self.checksum(of: exchange) : nil
            upload = try await NIOThreadPool.singleton.runIfActive { [store] in try store.create(record) }
        } catch let errorResponse as ErrorResponse {
            return errorResponse.response
        } catch {
            return Response(500, body: "Cannot create the upload: \(error).\n")
        }
        let location = (options.usesRelativeLocation ? "" : exchange.origin) + Self.root + upload.id
        let requestPosition = recorder.begin("POST", offset: 0, for: upload)
        if upload.record.parts != nil { await assemble(upload) }
        guard takesContent else {
            recorder.responded(201, to: requestPosition)
            let offset = options.offers(.creationWithUpload) && upload.record.parts == nil ? [("Upload-Offset", "0")] : []
            return Response(201, [("Location", location)] + offset + expiry(of: upload))
        }
        await upload.acquire(for: exchange.connection)
        defer { upload.release() }
        guard var response = try await receive(exchange, checksum, into: upload, requestPosition) else { return nil }
        if response.status == 204 {
            response.status = 201
            if upload.isComplete { await assembleFinals(with: upload) }
        } else if response.status == 460 {
            // This response contains no URL, so the client could never reach the upload.
            try? await NIOThreadPool.singleton.runIfActive { [store] in try store.remove(upload) }
        }
        if response.status != 460 { response.headers.append((name: "Location", value: location)) }
        recorder.responded(response.status, to: requestPosition)
        return response
    }

    private func newRecord(for exchange: Exchange) throws(ErrorResponse) -> StoredUpload {
        let concat = options.offers(.concatenation) ? exchange["Upload-Concat"] : nil
        let isFinal = concat?.hasPrefix("final;") == true
        guard concat == nil || concat == "partial" || isFinal else {
            throw ErrorResponse(400, because: "Upload-Concat must be \"partial\", or \"final;\" and the URLs of the partial uploads.")
        }
        let length = isFinal ? try finalLength(exchange) : try length(exchange)
        let header = exchange["Upload-Metadata"]
        guard let metadata = header.map(UploadMetadataHeader.decode) ?? [:] else {
            throw ErrorResponse(400, because: "Upload-Metadata must be pairs of a key and a base64 value, separated by commas.")
        }
        let partialIDs = isFinal ? try partialIDs(in: concat ?? "", for: exchange) : nil
        let expires = length == 0 ? nil : newExpiry
        return StoredUpload(
            id: "", length: length, metadata: metadata, uploadMetadata: header, uploadConcat: concat, parts: partialIDs, expires: expires,
            complete: length == 0)
    }

    /// Returns the announced length; nil if the client defers the length (tus 1.0.0, "Creation Defer Length").
    private func length(_ exchange: Exchange) throws(ErrorResponse) -> Int64? {
        if options.offers(.creationDeferLength), let deferred = exchange["Upload-Defer-Length"] {
            guard deferred == "1", exchange["Upload-Length"] == nil else {
                throw ErrorResponse(400, because: "Upload-Defer-Length must be 1, and Upload-Length must be absent.")
            }
            return nil
        }
        guard let text = exchange["Upload-Length"], let length = Int64(digits: text) else {
            throw ErrorResponse(400, because: "Upload-Length must be a number of bytes.")
        }
        try checkSize(length)
        return length
    }

    private func finalLength(_ exchange: Exchange) throws(ErrorResponse) -> Int64? {
        guard exchange["Upload-Length"] == nil, exchange["Upload-Defer-Length"] == nil, exchange.isBodyAtEnd else {
            throw ErrorResponse(400, because: "A final upload must have neither a length nor content.")
        }
        return nil
    }

    func checkSize(_ length: Int64) throws(ErrorResponse) {
        guard let maximum = options.maximumSize, length > maximum else { return }
        throw ErrorResponse(413, [("Tus-Max-Size", String(maximum))], because: "The upload is larger than \(maximum) bytes.")
    }

    /// Returns the largest allowed size of the upload in bytes.
    func limit(of record: StoredUpload) -> Int64 { record.length ?? options.maximumSize ?? .max }

    /// The expiry time of an upload that is created or changed now, in seconds since 1970; nil if uploads have no lifetime.
    var newExpiry: Int? {
        options.lifetime.map {
            Int((now().timeIntervalSince1970 + Double($0.components.seconds)).rounded(.up)) + ($0.components.attoseconds > 0 ? 1 : 0)
        }
    }

    func expiry(of upload: Upload) -> [(String, String)] {
        upload.record.expires.map { [("Upload-Expires", Date(secondsSince1970: $0).httpDate)] } ?? []
    }
}
