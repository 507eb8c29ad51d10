import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

/// Streams that are sent while the app produces them.
extension HTTPUpload {
    /// Whether the upload can begin before its source is complete. A form needs the length of its file, and a comparison of the content
    /// needs the whole content afterwards.
    func canSendLive(_ growth: SourceGrowth) -> Bool {
        guard !isForm, !comparesContent, case .growing = growth.extent else { return false }
        return growth.length != nil || !server.client.quirks.requiresLength(server.origin)
    }

    /// Sends a growing source in one request. Without a length, HTTP/1.1 sends the body in HTTP chunks (RFC 9112, section 7.1).
    ///
    /// The request can't resume. Every few MiB, the transport releases the bytes that the connection accepted: it saves a checkpoint, after
    /// which the queue can free these bytes. A failure of the request after the first release is therefore final.
    ///
    /// - Returns: The receipt; nil if the server requires the length before the first byte.
    /// - Throws: A ``TransferError``. Its class is ``FailureClass/sourceLost`` if the stream can't be sent again.
    func sendLive(_ file: FileReader, _ growth: SourceGrowth, _ folder: FolderCreation.Outcome) async throws -> TransferReceipt? {
        if leavesRecord { try await reporter.reportRecord() }
        let body = LiveBody(file, growth, on: disks.threads(for: file.source))
        defer { body.end() }
        var folder = folder
        var endpointResponse: EndpointResponse
        do {
            endpointResponse = try await request(body, growth)
            // Before the first release, the body can restart.
            if !isSuccess(endpointResponse), body.released == 0, let state = try await createFoldersAgain(after: endpointResponse) {
                if canStoreNow(endpointResponse, in: state) { endpointResponse = try await request(body, growth) }
                folder = state
            }
        } catch {
            // If the app's producer failed, that failure ended the request, so the producer's error is the cause.
            if case .failed(let cause) = growth.extent { throw cause }
            guard body.released > 0, let error = error as? TransferError else { throw error }
            throw body.lost(after: error)
        }
        // 411 (Length Required), or 501 for an unknown transfer coding (RFC 9112, section 6.1).
        if endpointResponse.status == 411 || endpointResponse.status == 501, growth.length == nil, body.released == 0 {
            server.client.quirks.recordRequiredLength(server.origin)
            return nil
        }
        do {
            guard isSuccess(endpointResponse) else { throw failure(endpointResponse, folder) }
            let accepted = endpointResponse.response.sent.accepted
            guard case .complete(let size) = growth.extent, accepted == size else {
                throw endpointResponse.earlySuccess(after: accepted, recordEarlySuccess())
            }
            return try await verifiedReceipt(endpointResponse, file, size, canReadAgain: body.released == 0)
        } catch let error as TransferError where body.released > 0 {
            throw body.lost(after: error)
        }
    }

    private func request(_ body: LiveBody, _ growth: SourceGrowth) async throws -> EndpointResponse {
        let reporter = reporter
        let (newlyAccepted, newlyAcceptedContinuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        async let saving: Void = {
            for await _ in newlyAccepted {
                guard let released = body.release() else { continue }
                try await reporter.save(Checkpoint(data: Data("stream".utf8), confirmed: released))
            }
        }()
        let endpointResponse: EndpointResponse
        do {
            defer { newlyAcceptedContinuation.finish() }
            endpointResponse = try await server.send(
                method, to: url, headers: fileHeaders, body: .stream(HTTPBodyStream(), length: growth.length), expectsContinue: true,
                pacing: { reporter.allowance(upTo: $0) },
                progress: { accepted in
                    body.accept(accepted)
                    reporter.report(sent: accepted, confirmed: min(accepted, body.released))
                    newlyAcceptedContinuation.yield()
                },
                prepare: { $0.body = body.start() }, canRepeat: { body.reserveRestart() })
        }
        try await saving
        return endpointResponse
    }
}
