import TransferCore
import TransportSupport

extension PatchLoop {
    /// The number of checksum mismatches of one request's content at which the attempt fails.
    static let maximumMismatches = 3

    struct RequestChecksum {
        /// The value of `Upload-Checksum` (tus 1.0.0).
        var header: String?
        /// The algorithm of the checksum that is computed while sending and sent as a trailer.
        var trailer: ChecksumAlgorithm?
        /// The checksum of the request's content, if it is known before sending.
        var content: RunningChecksum?
        /// The checksum of all content up to the end of the request, if it is known before sending.
        var whole: RunningChecksum?
    }

    /// Switches from trailers to headers if trailers do not arrive at the server.
    mutating func selectCheck(at offset: Int64) async throws {
        guard case .trailer(let algorithm) = check, try await !server.trailersArrive(at: url, offset, algorithm) else { return }
        check = .eachRequest(algorithm)
        chunks.configuredSize = chunks.configuredSize ?? check.chunkSize
    }

    /// Prepares the checksum of a request.
    ///
    /// - Parameter range: The bytes of the request, as offsets in the upload.
    /// - Throws: A ``TransferError`` of the class ``FailureClass/sourceChanged`` if an earlier read of the same bytes had a different checksum.
    mutating func checksum(_ range: Range<Int64>) async throws -> RequestChecksum {
        switch check {
        case .none, .readingBack: return RequestChecksum()
        case .trailer(let algorithm): return RequestChecksum(trailer: algorithm)
        case .eachRequest(let algorithm):
            let bytes = self.range.lowerBound + range.lowerBound..<self.range.lowerBound + range.upperBound
            let hashes = try await threads.fold(
                bytes, into: (request: RunningChecksum(algorithm), whole: contentHash), reading: { [file] in try file.bytes($0) },
                progress: reporter.reportActivity
            ) { hashes, buffer in
                hashes.request.update(buffer)
                hashes.whole?.update(buffer)
            }
            let header = hashes.request.header
            try storeChecksum(header, of: range)
            return RequestChecksum(header: header, content: hashes.request, whole: hashes.whole)
        }
    }

    /// Stores a checksum, after comparing it with the checksum of an earlier read of the same bytes.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/sourceChanged`` if the two checksums differ.
    mutating func storeChecksum(_ header: String, of range: Range<Int64>) throws(TransferError) {
        if let lastChecksum, lastChecksum.range == range, lastChecksum.header != header {
            throw TransferError(
                .sourceChanged, .sourceChanged, "\(file.source.path) changed while it was sent: the same bytes were read twice and differ.")
        }
        lastChecksum = (range, header)
    }

    /// Increases the stored number of unverified bytes.
    ///
    /// - Parameter count: The number of bytes that the server kept without comparing their checksum.
    func saveUnverified(_ count: Int64) async throws {
        // With the IETF protocol, the checksum of the whole file is compared.
        guard count > 0, check.verifiesEachRequest, server.dialect.ietf == nil else { return }
        try await record.save { [slot] in $0[slot].unverified = ($0[slot].unverified ?? 0) + count }
    }

    /// Returns the checksum of all content up to the end of a successful request; nil if it is unknown.
    func hashOfAllContent(after checksum: RequestChecksum, _ tusResponse: TUSResponse, of range: Range<Int64>) -> RunningChecksum? {
        if checksum.trailer == nil { return checksum.whole }
        if range.lowerBound == 0 { return tusResponse.contentHash }
        // An empty request, which only declares the length of a stream, does not change the checksum.
        return range.isEmpty ? contentHash : nil
    }
}
