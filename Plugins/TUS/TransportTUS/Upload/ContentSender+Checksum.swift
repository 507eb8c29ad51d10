import TransferCore
import TransportSupport

extension ContentSender {
    /// How often a request is sent whose content does not match its checksum, according to the server.
    static let maximumMismatches = 3

    /// The checksums of a request.
    struct Seal {
        /// The value of `Upload-Checksum` (tus 1.0.0).
        var header: String?
        /// The checksum to compute while sending, and to send as a trailer.
        var trailer: ChecksumAlgorithm?
        /// The checksum of all content up to the end of the request, if known before.
        var whole: ContentHash?
    }

    /// Sends checksums as trailers only if they reach the server, otherwise as headers.
    mutating func settleCheck(at offset: Int64) async throws {
        guard case .trailer(let algorithm) = check, try await !server.trailersArrive(at: url, offset, algorithm) else { return }
        check = .eachRequest(algorithm)
        chunks.wanted = chunks.wanted ?? check.chunkSize
    }

    /// Prepares the checksum of a request.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/sourceChanged`` if the same bytes were read before and differ.
    mutating func seal(_ range: Range<Int64>) async throws -> Seal {
        switch check {
        case .none, .readingBack: return Seal()
        case .trailer(let algorithm): return Seal(trailer: algorithm)
        case .eachRequest(let algorithm):
            let bytes = self.range.lowerBound + range.lowerBound..<self.range.lowerBound + range.upperBound
            let hashes = try await file.hash(
                bytes, with: algorithm, alongside: contentHash, on: threads, progress: reporter.reportActivity)
            let header = hashes.hash.header
            try noteChecksum(header, of: range)
            return Seal(header: header, whole: hashes.alongside)
        }
    }

    /// Compares with the checksum of the same bytes from an earlier read.
    mutating func noteChecksum(_ header: String, of range: Range<Int64>) throws(TransferError) {
        if let lastChecksum, lastChecksum.range == range, lastChecksum.header != header {
            throw TransferError(
                .sourceChanged, .sourceChanged, "\(file.source.path) changed while it was sent: the same bytes were read twice and differ.")
        }
        lastChecksum = (range, header)
    }

    /// Notes that the server kept bytes of a request without comparing their checksum.
    func noteUnverified(_ count: Int64) async throws {
        guard count > 0, check.comparesRequests else { return }
        try await record.save { [slot] in $0[slot].unverified = ($0[slot].unverified ?? 0) + count }
    }

    /// The checksum of all content up to the end of a successful request; nil if it is unknown.
    func wholeHash(after seal: Seal, _ answer: TUSAnswer, of range: Range<Int64>) -> ContentHash? {
        if seal.trailer == nil { return seal.whole }
        if range.lowerBound == 0 { return answer.contentHash }
        // A request that only sends the length of a stream changes nothing.
        return range.isEmpty ? contentHash : nil
    }
}
