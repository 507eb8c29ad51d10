import NIOPosix
import SystemPackage
import TransferCore

import struct NIOCore.ByteBuffer

extension RequestHandler {
    /// PATCH: appends bytes at the offset where the upload is (tus 1.0.0, "PATCH").
    @concurrent
    func extend(_ upload: Upload, _ exchange: Exchange) async throws -> Response? {
        let offset = exchange["Upload-Offset"].flatMap { Int64(digits: $0) }
        let entry = recorder.begin("PATCH", offset: offset, for: upload)
        let response: Response?
        if let offset {
            let refusal = refusal(of: exchange, at: offset, of: upload)
            response = if let refusal { refusal } else { try await take(exchange, into: upload, entry) }
        } else {
            response = Response(400, body: "Upload-Offset has to be a number of bytes.\n")
        }
        if let response { recorder.answered(response.status, to: entry) }
        return response
    }

    private func refusal(of exchange: Exchange, at offset: Int64, of upload: Upload) -> Response? {
        guard exchange["Content-Type"]?.lowercased() == "application/offset+octet-stream" else { return wrongContentType }
        guard offset == upload.offset else {
            let description = "The upload is at \(upload.offset) bytes, not at \(offset).\n"
            return Response(409, [("Upload-Offset", String(upload.offset))], body: description)
        }
        if upload.isComplete, !exchange.isBodyAtEnd { return Response(403, body: "The upload is complete.\n") }
        return refusal(of: exchange, at: offset, length: upload.record.length)
    }

    /// What is wrong with a body before it is read; nil if nothing is.
    func refusal(of exchange: Exchange, at offset: Int64, length: Int64) -> Response? {
        guard exchange["Content-Type"]?.lowercased() == "application/offset+octet-stream" else { return wrongContentType }
        if let bytes = exchange.bodyLength, bytes > length - offset { return tooLong }
        return nil
    }

    private var wrongContentType: Response {
        Response(415, body: "Content-Type has to be application/offset+octet-stream.\n")
    }

    private var tooLong: Response {
        Response(413, body: "The body is longer than what is left of the upload.\n")
    }

    /// Appends a body to an upload that the request holds, piece by piece as it comes.
    ///
    /// - Returns: nil if a fault cut the connection; what came until then is stored.
    /// - Throws: If the connection ended; what came until then is stored.
    @concurrent
    func take(_ exchange: Exchange, into upload: Upload, _ entry: StatisticsRecorder.Entry) async throws -> Response? {
        var outcome: Outcome
        do {
            let file = try await NIOThreadPool.singleton.runIfActive { try FileDescriptor.open(upload.file, .writeOnly) }
            outcome = await append(exchange, to: file, of: upload, entry)
            try await NIOThreadPool.singleton.runIfActive {
                try file.close()
                if upload.isComplete { try upload.writeRecord() }
            }
        } catch {
            outcome = .unwritable(error)
        }
        switch outcome {
        case .complete: return Response(204, [("Upload-Offset", String(upload.offset))])
        case .cut: return nil
        case .tooLong: return tooLong
        case .unwritable(let error): return Response(500, body: "The upload can't be written: \(error).\n")
        case .ended(let error):
            guard exchange.connection.isInterrupted else { throw error }
            return Response(400, body: "Another request for this upload ended this one.\n")
        }
    }

    private enum Outcome {
        case complete
        case cut
        case tooLong
        case unwritable(any Error)
        case ended(any Error)
    }

    @concurrent
    private func append(
        _ exchange: Exchange, to file: FileDescriptor, of upload: Upload, _ entry: StatisticsRecorder.Entry
    ) async -> Outcome {
        let cut = faults.nextCut
        var received: Int64 = 0
        while true {
            if let cut, received >= cut, faults.takeCut(afterBodyBytes: cut) { return .cut }
            let limit = min(cut.map { $0 > received ? $0 - received : .max } ?? .max, pieceSize)
            let piece: ByteBuffer
            do {
                guard let next = try await exchange.next(upTo: limit) else { return .complete }
                piece = next
            } catch {
                return .ended(error)
            }
            let space = Int(clamping: upload.record.length - upload.offset)
            let stored = piece.getSlice(at: piece.readerIndex, length: min(space, piece.readableBytes)) ?? piece
            do {
                // Only then the next piece is asked for, so that a fast sender has to wait for the disk.
                let total = try await NIOThreadPool.singleton.runIfActive { try upload.append(stored, to: file) }
                recorder.stored(stored.readableBytes, of: entry, total: total)
            } catch {
                return .unwritable(error)
            }
            received += Int64(stored.readableBytes)
            if stored.readableBytes < piece.readableBytes {
                recorder.discarded(Int64(piece.readableBytes - stored.readableBytes))
                return .tooLong
            }
            await keepRate(after: piece.readableBytes, on: exchange.connection)
        }
    }

    private func keepRate(after bytes: Int, on connection: Connection) async {
        // What an interrupted connection had brought already is no longer held back: another request waits for it.
        guard let rate = options.bytesPerSecond, !connection.isInterrupted else { return }
        try? await Task.sleep(for: .seconds(Double(bytes) / Double(max(rate, 1))))
    }

    /// How much is stored at most before the rate is looked at: a tenth of a second's worth.
    private var pieceSize: Int64 {
        options.bytesPerSecond.map { max(1, $0 / 10) } ?? .max
    }
}
