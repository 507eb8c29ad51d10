import TransferCore
import TransportSupport

extension ContentSender {
    /// How often a request may be sent whose content arrives as something else, by the server's word.
    static let maximumMismatches = 3

    /// What a request carries to have its content verified.
    struct Seal {
        /// The value of `Upload-Checksum` (tus 1.0.0, "Checksum").
        var header: String?
        /// What is to be computed on the way, and sent behind.
        var trailer: ChecksumAlgorithm?
        /// The checksum of all up to the end of the request, if it is known before.
        var whole: ContentHash?
    }

    /// Relies on checksums behind the content only where they get to the server. Otherwise each request has its checksum before its content.
    mutating func settleCheck(at offset: Int64) async throws {
        guard case .trailer(let algorithm) = check, try await !server.trailersArrive(at: url, offset, algorithm) else { return }
        check = .eachRequest(algorithm)
        chunks.wanted = chunks.wanted ?? check.chunkSize
    }

    /// Prepares a request that brings these bytes of the upload.
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

    /// Compares with the checksum of the same bytes when they were read before.
    mutating func noteChecksum(_ header: String, of range: Range<Int64>) throws(TransferError) {
        if let lastChecksum, lastChecksum.range == range, lastChecksum.header != header {
            throw TransferError(
                .sourceChanged, .sourceChanged, "\(file.source.path) changed while it was sent: the same bytes were read twice and differ.")
        }
        lastChecksum = (range, header)
    }

    /// Puts down that the server kept so many bytes of a request without that it could compare their checksum.
    func noteUnverified(_ count: Int64) async throws {
        guard count > 0, check.comparesRequests else { return }
        try await record.save { [slot] in $0[slot].unverified = ($0[slot].unverified ?? 0) + count }
    }

    /// The checksum of all that was sent up to the end of a request that succeeded; nil if nobody computed it.
    func wholeHash(after seal: Seal, _ answer: TUSAnswer, of range: Range<Int64>) -> ContentHash? {
        if seal.trailer == nil { return seal.whole }
        if range.lowerBound == 0 { return answer.contentHash }
        // One that only told the length of a stream changes nothing.
        return range.isEmpty ? contentHash : nil
    }
}
