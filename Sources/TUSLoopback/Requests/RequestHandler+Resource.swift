import Foundation
import NIOPosix
import TransferCore

/// The requests of the IETF protocol (draft-ietf-httpbis-resumable-upload).
///
/// A POST, PUT or PATCH to ``root`` or any path below ``root`` creates an upload resource below ``uploads``. Complete uploads can be
/// downloaded below ``root``.
extension RequestHandler {
    /// The prefix of the paths of upload resources.
    static let uploads = "/uploads/"
    static let interopHeader = "Upload-Draft-Interop-Version"

    /// Returns the response to a request; nil if the connection must be closed without a response.
    @concurrent
    func dispatchResource(_ exchange: Exchange) async throws -> Response? {
        let isUpload = exchange.path.hasPrefix(Self.uploads)
        guard isUpload || exchange.path.hasPrefix(Self.root) || exchange.path + "/" == Self.root else {
            return Response(404, body: "Not found. Send files to \(Self.root).\n")
        }
        if !isUpload, exchange.method == "GET" {
            guard case .found(let upload) = store.lookUp(String(exchange.path.dropFirst(Self.root.count))) else {
                return Response(404, noStore)
            }
            return options.servesDownloads ? await download(upload, exchange) : Response(405)
        }
        if let version = options.dialect.draftVersion, exchange[Self.interopHeader] != version {
            return Response(400, body: "\(Self.interopHeader) must be \(version).\n")
        }
        if exchange.method == "OPTIONS" { return Response(204, [("Accept-Patch", partialUploadMediaType)] + limits(of: nil)) }
        guard isUpload else {
            guard ["POST", "PUT", "PATCH"].contains(exchange.method) else { return Response(405, [("Allow", "OPTIONS, POST, PUT, PATCH")]) }
            return try await createResource(exchange)
        }
        switch store.lookUp(String(exchange.path.dropFirst(Self.uploads.count))) {
        case .unknown: return Response(404, noStore, body: "There is no such upload.\n")
        case .terminated: return Response(410, noStore, body: "The upload was cancelled.\n")
        case .found(let upload):
            if isExpired(upload) { return await expire(upload) }
            if upload.isComplete, options.forgetsCompleteUploads { return Response(404, noStore) }
            return try await handleResource(exchange, for: upload)
        }
    }

    @concurrent
    private func handleResource(_ exchange: Exchange, for upload: Upload) async throws -> Response? {
        let hasContent = exchange.method == "PATCH"
        guard ["HEAD", "PATCH", "DELETE"].contains(exchange.method) else {
            return Response(405, [("Allow", "OPTIONS, HEAD, PATCH, DELETE")])
        }
        let connection = exchange.connection
        await arrivalOrder.waitForEarlierRequests(exchange.path, hasContent: hasContent, on: connection.channel)
        await upload.acquire(for: hasContent ? connection : nil) { arrivalOrder.beginHandling(on: connection.channel) }
        defer { upload.release() }
        guard case .found = store.lookUp(upload.id) else { return Response(410, noStore) }
        switch exchange.method {
        case "HEAD":
            recorder.responded(204, to: recorder.begin("HEAD", offset: upload.offset, for: upload))
            let length = upload.record.length.map { [("Upload-Length", "\($0)")] } ?? []
            return Response(204, noStore + state(of: upload) + length + limits(of: upload) + (await digest(of: upload, for: exchange)))
        case "PATCH": return try await appendToResource(upload, exchange)
        default: return await terminate(upload)
        }
    }

    @concurrent
    private func createResource(_ exchange: Exchange) async throws -> Response? {
        let upload: Upload
        let isLast: Bool
        let checksum: ChecksumLocation?
        do {
            isLast = try completeness(of: exchange)
            let length = try announcedLength(exchange, at: 0, isLast: isLast)
            try checkLimits(exchange, length: length, isLast: isLast)
            checksum = try contentDigest(of: exchange)
            _ = try sha256(in: "Repr-Digest", of: exchange)
            var metadata = ["filetype": exchange["Content-Type"] ?? ""]
            metadata["filename"] = exchange["Content-Disposition"].flatMap(Self.fileName)
            let record = StoredUpload(id: "", length: length, metadata: metadata, expires: newExpiry, isClosed: false)
            upload = try await NIOThreadPool.singleton.runIfActive { [store] in try store.create(record) }
        } catch let errorResponse as ErrorResponse {
            return errorResponse.response
        }
        let requestPosition = recorder.begin("POST", offset: 0, for: upload)
        let location = (options.usesRelativeLocation ? "" : exchange.origin) + Self.uploads + upload.id
        // Acquire the upload before the client learns its URL. A later request for the upload's state then ends this request first.
        await upload.acquire(for: exchange.connection)
        defer { upload.release() }
        if options.sendsInterimResponses {
            try await exchange.sendInterim([("Location", location)] + draftVersionHeaders + limits(of: upload))
        }
        guard var response = try await receiveResource(exchange, checksum, into: upload, requestPosition, isLast: isLast) else {
            return nil
        }
        if response.status == 204 { response.status = 201 }
        if !upload.isComplete { response.headers.append((name: "Location", value: location)) }
        recorder.responded(response.status, to: requestPosition)
        return response
    }

    @concurrent
    private func appendToResource(_ upload: Upload, _ exchange: Exchange) async throws -> Response? {
        let offset = exchange["Upload-Offset"].flatMap { Int64(digits: $0) }
        let requestPosition = recorder.begin("PATCH", offset: offset, for: upload)
        let response: Response?
        do {
            let isLast = try completeness(of: exchange)
            guard exchange["Content-Type"]?.lowercased() == partialUploadMediaType else {
                throw ErrorResponse(415, because: "Content-Type must be \(partialUploadMediaType).")
            }
            guard let offset else { throw ErrorResponse(400, because: "Upload-Offset must be a number of bytes.") }
            guard !upload.isComplete else { throw problem(400, "completed-upload", "The upload is complete.", state(of: upload)) }
            guard offset == upload.offset else {
                throw problem(
                    409, "mismatching-upload-offset", "The upload's offset is \(upload.offset), not \(offset).", state(of: upload),
                    members: ["expected-offset": upload.offset, "provided-offset": offset])
            }
            let length = try announcedLength(exchange, at: offset, isLast: isLast)
            if let length, let known = upload.record.length, known != length { throw inconsistentLength }
            try checkLimits(exchange, length: length ?? upload.record.length, isLast: isLast)
            let checksum = try contentDigest(of: exchange)
            _ = try sha256(in: "Repr-Digest", of: exchange)
            if let length, upload.record.length == nil {
                try await NIOThreadPool.singleton.runIfActive { try upload.change { $0.length = length } }
            }
            response = try await receiveResource(exchange, checksum, into: upload, requestPosition, isLast: isLast)
        } catch let errorResponse as ErrorResponse {
            response = errorResponse.response
        }
        if let response { recorder.responded(response.status, to: requestPosition) }
        return response
    }

    /// Stores the content of a request, and completes the upload if the request is the last one.
    ///
    /// - Returns: The response, with the status 204 or 201 if the content was stored; nil if a simulated fault or the server's shutdown ended the
    ///   connection.
    @concurrent
    private func receiveResource(
        _ exchange: Exchange, _ checksum: ChecksumLocation?, into upload: Upload, _ requestPosition: StatisticsRecorder.RequestPosition,
        isLast: Bool
    ) async throws -> Response? {
        guard let response = try await receive(exchange, checksum, into: upload, requestPosition) else { return nil }
        if response.status == 460 {
            return problem(400, "digest-mismatching-values", "The content does not match Content-Digest.").response
        }
        guard response.status == 204 else { return response }
        guard isLast else { return Response(204, state(of: upload) + limits(of: upload)) }
        if let length = upload.record.length, length != upload.offset { return inconsistentLength.response }
        if let expected = try? sha256(in: "Repr-Digest", of: exchange), let own = await sha256(of: upload),
            own != expected.value.base64EncodedString()
        {
            try? await NIOThreadPool.singleton.runIfActive { [store] in try store.remove(upload) }
            return problem(400, "digest-mismatching-values", "The file does not match Repr-Digest.", [("Upload-Complete", "?1")]).response
        }
        let size = upload.offset
        try await NIOThreadPool.singleton.runIfActive {
            try upload.change {
                $0.isClosed = true
                $0.length = size
                $0.expires = nil
            }
        }
        recorder.updated(upload)
        if faults.takeLostResponse() { return nil }
        let location = (options.usesRelativeLocation ? "" : exchange.origin) + Self.root + upload.id
        return Response(201, [("Location", location)] + state(of: upload) + (await digest(of: upload, for: exchange)))
    }
}
