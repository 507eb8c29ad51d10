import Foundation
import SystemPackage
import TransferCore

extension RequestHandler {
    /// PATCH: appends bytes at the offset where the upload is (tus 1.0.0, "PATCH").
    func extend(_ upload: Upload, _ head: RequestHead, _ body: RequestBody, _ connection: Connection) -> Response? {
        let offset = head["Upload-Offset"].flatMap { Int64(digits: $0) }
        let entry = recorder.begin("PATCH", offset: offset, for: upload)
        let response: Response?
        if let offset {
            response =
                refusal(of: body, head, at: offset, of: upload) ?? take(body, into: upload, connection, entry)
        } else {
            response = Response(400, body: "Upload-Offset has to be a number of bytes.\n")
        }
        if let response { recorder.answered(response.status, to: entry) }
        return response
    }

    private func refusal(of body: RequestBody, _ head: RequestHead, at offset: Int64, of upload: Upload) -> Response? {
        guard head["Content-Type"]?.lowercased() == "application/offset+octet-stream" else { return wrongContentType }
        guard offset == upload.offset else {
            let description = "The upload is at \(upload.offset) bytes, not at \(offset).\n"
            return Response(409, [("Upload-Offset", String(upload.offset))], body: description)
        }
        if upload.isComplete, !body.isAtEnd { return Response(403, body: "The upload is complete.\n") }
        return refusal(of: body, head, at: offset, length: upload.record.length)
    }

    /// What is wrong with a body before it is read; nil if nothing is.
    func refusal(of body: RequestBody, _ head: RequestHead, at offset: Int64, length: Int64) -> Response? {
        guard head["Content-Type"]?.lowercased() == "application/offset+octet-stream" else { return wrongContentType }
        if case .known(let bytes) = body.length, bytes > length - offset { return tooLong }
        return nil
    }

    private var wrongContentType: Response {
        Response(415, body: "Content-Type has to be application/offset+octet-stream.\n")
    }

    private var tooLong: Response {
        Response(413, body: "The body is longer than what is left of the upload.\n")
    }

    /// Appends a body to an upload that the connection holds, piece by piece as it comes.
    ///
    /// - Returns: nil if the connection ended or a fault cut it; what came until then is stored.
    func take(_ body: RequestBody, into upload: Upload, _ connection: Connection, _ entry: StatisticsRecorder.Entry) -> Response? {
        do {
            let file = try FileDescriptor.open(upload.file, .writeOnly)
            let outcome = try file.closeAfter { try append(body, to: file, of: upload, connection, entry) }
            if upload.isComplete { try upload.writeRecord() }
            switch outcome {
            case .complete: return Response(204, [("Upload-Offset", String(upload.offset))])
            case .cut: return nil
            case .tooLong: return tooLong
            }
        } catch let failure as ConnectionFailure {
            if case .malformed(let reason) = failure { return Response(400, body: reason + "\n") }
            return connection.isReadingInterrupted ? Response(400, body: "Another request for this upload ended this one.\n") : nil
        } catch {
            return Response(500, body: "The upload can't be written: \(error).\n")
        }
    }

    private enum Outcome {
        case complete
        case cut
        case tooLong
    }

    private func append(
        _ body: RequestBody, to file: FileDescriptor, of upload: Upload, _ connection: Connection, _ entry: StatisticsRecorder.Entry
    ) throws -> Outcome {
        let cut = faults.nextCut
        var received: Int64 = 0
        var receivedSinceInterrupted: Int64 = 0
        while true {
            if let cut, received >= cut, faults.takeCut(afterBodyBytes: cut) { return .cut }
            let limit = min(cut.map { $0 > received ? $0 - received : .max } ?? .max, pieceSize)
            guard let piece = try body.next(upTo: limit) else { return .complete }
            let space = upload.record.length - upload.offset
            let stored = piece.prefix(Int(clamping: space))
            let total = try upload.append(stored, to: file)
            recorder.stored(stored.count, of: entry, total: total)
            received += Int64(stored.count)
            if stored.count < piece.count {
                recorder.discarded(Int64(piece.count - stored.count))
                return .tooLong
            }
            if let rate = options.bytesPerSecond { Thread.sleep(forTimeInterval: Double(piece.count) / Double(max(rate, 1))) }
            if connection.isReadingInterrupted {
                // What the system had already received comes yet, but a fast sender must not go on for ever.
                receivedSinceInterrupted += Int64(piece.count)
                if receivedSinceInterrupted > 8 * 1024 * 1024 { throw ConnectionFailure.ended }
            }
        }
    }

    /// How much is read at most before the rate is looked at: a tenth of a second's worth.
    private var pieceSize: Int64 {
        options.bytesPerSecond.map { max(1, $0 / 10) } ?? .max
    }
}
