import NIOPosix
import SystemPackage
import TransferCore

import struct NIOCore.ByteBuffer

extension RequestHandler {
    /// PATCH: appends bytes at the current offset of the upload (tus 1.0.0, "PATCH").
    @concurrent
    func extend(_ upload: Upload, _ exchange: Exchange) async throws -> Response? {
        let offset = exchange["Upload-Offset"].flatMap { Int64(digits: $0) }
        let requestPosition = recorder.begin("PATCH", offset: offset, for: upload)
        let response: Response?
        do {
            guard let offset else { throw ErrorResponse(400, because: "Upload-Offset must be a number of bytes.") }
            if let errorResponse = errorResponse(of: exchange, at: offset, of: upload) {
                response = errorResponse
            } else {
                let checksum = try checksum(of: exchange)
                let length = try length(exchange, of: upload)
                if let errorResponse = errorResponse(of: exchange, at: offset, length: length ?? limit(of: upload.record)) {
                    response = errorResponse
                } else {
                    if let length, upload.record.length == nil { try await setLength(length, of: upload) }
                    response = try await receive(exchange, checksum, into: upload, requestPosition)
                }
            }
        } catch let errorResponse as ErrorResponse {
            response = errorResponse.response
        }
        if upload.isComplete { await assembleFinals(with: upload) }
        if let response { recorder.responded(response.status, to: requestPosition) }
        return response
    }

    private func errorResponse(of exchange: Exchange, at offset: Int64, of upload: Upload) -> Response? {
        guard exchange["Content-Type"]?.lowercased() == "application/offset+octet-stream" else { return wrongContentType }
        if upload.record.parts != nil { return Response(403, body: "The upload is final and accepts no content.\n") }
        guard offset == upload.offset else {
            let description = "The upload's offset is \(upload.offset), not \(offset).\n"
            return Response(409, [("Upload-Offset", String(upload.offset))], body: description)
        }
        if upload.isComplete, !exchange.isBodyAtEnd { return Response(403, body: "The upload is complete.\n") }
        return nil
    }

    /// Returns the deferred length that a request announces (tus 1.0.0, "Creation Defer Length"); nil if the request announces none.
    private func length(_ exchange: Exchange, of upload: Upload) throws(ErrorResponse) -> Int64? {
        guard let text = exchange["Upload-Length"] else { return nil }
        guard let length = Int64(digits: text) else { throw ErrorResponse(400, because: "Upload-Length must be a number of bytes.") }
        if let known = upload.record.length, known != length {
            throw ErrorResponse(400, because: "The length of the upload is \(known) and can't be changed.")
        }
        guard length >= upload.offset else { throw ErrorResponse(400, because: "The upload already has more than \(length) bytes.") }
        try checkSize(length)
        return length
    }

    @concurrent
    private func setLength(_ length: Int64, of upload: Upload) async throws {
        try await NIOThreadPool.singleton.runIfActive { try upload.change { $0.length = length } }
        recorder.updated(upload)
    }

    /// Returns the location of a body's checksum (tus 1.0.0, "Checksum"); nil if the request announces no checksum, or the extension is
    /// disabled.
    ///
    /// - Throws: ``invalidChecksum`` if the header can't be parsed or its algorithm is not supported.
    func checksum(of exchange: Exchange) throws(ErrorResponse) -> ChecksumLocation? {
        guard options.offers(.checksum) else { return nil }
        if let header = exchange["Upload-Checksum"] {
            guard let checksum = TUSChecksum(header) else { throw invalidChecksum }
            return .header(checksum)
        }
        let announced = exchange["Trailer"]?.lowercased().split(separator: ",").contains { $0.trimming(" ") == "upload-checksum" }
        return announced == true && options.offers(.checksumTrailer) ? .trailer : nil
    }

    private var invalidChecksum: ErrorResponse {
        ErrorResponse(400, because: "Upload-Checksum must be one of \(TUSChecksumAlgorithm.advertised), followed by a base64 value.")
    }

    /// Checks the media type and the length of a body before the body is read. Returns nil if both are valid.
    ///
    /// - Parameters:
    ///   - offset: The offset of the body in the upload.
    ///   - length: The largest allowed size of the upload in bytes.
    func errorResponse(of exchange: Exchange, at offset: Int64, length: Int64) -> Response? {
        guard exchange["Content-Type"]?.lowercased() == "application/offset+octet-stream" else { return wrongContentType }
        if let bytes = exchange.bodyLength, bytes > length - offset { return tooLong }
        return nil
    }

    private var wrongContentType: Response {
        Response(415, body: "Content-Type must be application/offset+octet-stream.\n")
    }

    private var tooLong: Response {
        Response(413, body: "The body is longer than the remaining bytes of the upload.\n")
    }

    /// Appends a body to an upload while the body arrives. Requires exclusive access to the upload.
    ///
    /// Keeps the bytes that were received before an error or a cut, unless the body has a checksum.
    ///
    /// - Returns: The response; nil if a simulated fault or the server's shutdown ended the connection.
    /// - Throws: An error if the client closed the connection or sent invalid HTTP.
    @concurrent
    func receive(
        _ exchange: Exchange, _ checksum: ChecksumLocation?, into upload: Upload, _ requestPosition: StatisticsRecorder.RequestPosition
    ) async throws -> Response? {
        let start = upload.offset
        var outcome: Outcome
        do {
            let file = try await NIOThreadPool.singleton.runIfActive {
                if checksum != nil { try upload.change { $0.unverifiedFrom = start } }
                return try FileDescriptor.open(upload.file, .writeOnly)
            }
            var hashes = checksum.map { ContentHashes(for: $0) }
            outcome = await append(exchange, &hashes, to: file, of: upload, requestPosition)
            if let checksum, let hashes, case .complete = outcome { outcome = compare(hashes, checksum, exchange) }
            let isUnverified = if checksum != nil, case .complete = outcome { false } else { checksum != nil }
            let expiry = newExpiry
            try await NIOThreadPool.singleton.runIfActive {
                try file.close()
                if isUnverified { try upload.truncate(to: start) }
                let expires = upload.isComplete ? nil : expiry
                try upload.change {
                    $0.unverifiedFrom = nil
                    $0.expires = expires
                }
            }
            if isUnverified { recorder.discardedStoredBytes(of: requestPosition) }
            recorder.updated(upload)
        } catch {
            outcome = .unwritable(error)
        }
        switch outcome {
        case .complete: return Response(204, [("Upload-Offset", String(upload.offset))] + expiry(of: upload))
        case .cut: return nil
        case .tooLong: return tooLong
        case .invalidChecksum: return invalidChecksum.response
        case .mismatch: return Response(460, body: "The checksum of the content does not match.\n")
        case .unwritable(let error): return Response(500, body: "Cannot write the upload: \(error).\n")
        case .ended(let error):
            switch exchange.connection.interruption {
            case .request: return Response(400, body: "Another request for this upload ended this request.\n")
            // The client's request is valid, so there must be no error response.
            case .serverShutdown: return nil
            case nil: throw error
            }
        }
    }

    private func compare(_ hashes: ContentHashes, _ location: ChecksumLocation, _ exchange: Exchange) -> Outcome {
        let checksum: TUSChecksum?
        switch location {
        case .header(let announced): checksum = announced
        case .trailer: checksum = exchange.trailer("Upload-Checksum", in: arrivalOrder).flatMap { TUSChecksum($0) }
        }
        guard let checksum else { return .invalidChecksum }
        return hashes.matches(checksum) ? .complete : .mismatch
    }

    private enum Outcome {
        case complete
        case cut
        case tooLong
        case invalidChecksum
        case mismatch
        case unwritable(any Error)
        case ended(any Error)
    }

    @concurrent
    private func append(
        _ exchange: Exchange, _ hashes: inout ContentHashes?, to file: FileDescriptor, of upload: Upload,
        _ requestPosition: StatisticsRecorder.RequestPosition
    ) async -> Outcome {
        let cut = faults.nextCut
        var received: Int64 = 0
        var reported = upload.offset
        while true {
            if let cut, received >= cut, faults.takeCut(afterBodyBytes: cut) { return .cut }
            guard let transferable = await faults.transferableBytes(from: upload.offset, on: exchange.connection) else {
                return .ended(ConnectionEnded())
            }
            let limit = min(cut.map { $0 > received ? $0 - received : .max } ?? .max, writeLimit, transferable)
            let bytes: ByteBuffer
            do {
                guard let next = try await exchange.next(upTo: limit) else { return .complete }
                bytes = next
            } catch {
                return .ended(error)
            }
            let space = Int(clamping: self.limit(of: upload.record) - upload.offset)
            let stored = bytes.getSlice(at: bytes.readerIndex, length: min(space, bytes.readableBytes)) ?? bytes
            do {
                // Waits until these bytes are written, so a fast sender can't outrun the disk.
                _ = try await NIOThreadPool.singleton.runIfActive { try upload.append(stored, to: file) }
                upload.setExpiry(newExpiry)
                recorder.stored(stored.readableBytes, of: requestPosition)
                recorder.updated(upload)
            } catch {
                return .unwritable(error)
            }
            hashes?.update(stored)
            received += Int64(stored.readableBytes)
            do { try await reportProgress(upload, &reported, exchange) } catch { return .ended(error) }
            if stored.readableBytes < bytes.readableBytes {
                recorder.discarded(Int64(bytes.readableBytes - stored.readableBytes))
                return .tooLong
            }
            await limitRate(after: bytes.readableBytes, on: exchange.connection)
        }
    }

    /// Sends an interim response with the upload's offset, if enough bytes were stored since the last interim response (IETF) and the
    /// content has no checksum.
    @concurrent
    private func reportProgress(_ upload: Upload, _ reported: inout Int64, _ exchange: Exchange) async throws {
        guard options.dialect != .tus, options.sendsInterimResponses, let interval = options.progressInterval,
            upload.offset - reported >= max(1, interval), upload.record.unverifiedFrom == nil
        else { return }
        reported = upload.offset
        try await exchange.sendInterim([("Upload-Offset", "\(reported)")] + draftVersionHeaders)
    }

    private func limitRate(after bytes: Int, on connection: Connection) async {
        // The rate of an interrupted connection is not limited, because another request waits for the end of the interrupted request.
        guard let rate = options.bytesPerSecond, !connection.isInterrupted else { return }
        try? await Task.sleep(for: .seconds(Double(bytes) / Double(max(rate, 1))))
    }

    /// The maximum number of bytes to write before each delay of the rate limit: the bytes that the rate allows in a tenth of a second.
    private var writeLimit: Int64 {
        options.bytesPerSecond.map { max(1, $0 / 10) } ?? .max
    }
}
