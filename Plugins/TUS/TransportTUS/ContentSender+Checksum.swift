import Foundation
import TransferCore
import TransportSupport

extension ContentSender {
    /// How often a request may be sent whose content arrives as something else, by the server's word.
    static let maximumMismatches = 3

    /// The value of `Upload-Checksum` for a request (tus 1.0.0, "Checksum"), and the checksum of all up to its end; nil where none is asked for.
    mutating func checksum(of range: Range<Int64>) async throws -> (header: String?, whole: ContentHash?) {
        guard case .eachRequest(let algorithm) = check else { return (nil, nil) }
        let hashes = try await file.hash(inFile(range), with: algorithm, alongside: contentHash, on: threads)
        let header = "\(algorithm.rawValue) \(Data(hashes.hash.digest).base64EncodedString())"
        if let lastChecksum, lastChecksum.range == range, lastChecksum.header != header {
            throw TransferError(
                .sourceChanged, .sourceChanged, "\(file.source.path) changed while it was sent: the same bytes were read twice and differ.")
        }
        lastChecksum = (range, header)
        return (header, hashes.alongside)
    }

    private func inFile(_ range: Range<Int64>) -> Range<Int64> {
        self.range.lowerBound + range.lowerBound..<self.range.lowerBound + range.upperBound
    }
}
