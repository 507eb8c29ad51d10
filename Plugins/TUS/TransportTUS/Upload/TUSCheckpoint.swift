import Foundation
import TransferCore

/// One upload on the server: a resource with its own URL, which receives the content of a file or a segment with one or more requests.
struct RemoteUpload: Codable, Sendable {
    /// The absolute URL; nil until the server has sent it.
    var url: String?

    /// The stored name (``Dialect/storedName``) of the dialect that the server last accepted for the upload; before that, of the dialect of the
    /// creation. Nil for tus 1.0.0.
    var dialect: String?

    /// Whether the server may have received all of the content, and may have completed the upload, although no final response arrived (IETF). If
    /// the upload is gone, the server may then have processed the file.
    var mayBeComplete: Bool?

    /// Whether the app supplied the URL (`AttemptOptions.uploadURL`). All attempts then use the same upload.
    var isGiven: Bool?

    /// The number of bytes that the server confirmed.
    var confirmed: Int64?

    /// The offset at which the server responded to a `PATCH` with 400. A second 400 at the same offset is permanent.
    var refusedOffset: Int64?

    /// The number of unverified bytes that the server kept from interrupted requests. A server compares checksums only at the end of a request.
    var unverified: Int64?

    /// The last `PATCH`, if the server may have bytes of this request that the server's offset does not include: either the request was
    /// interrupted and the server refused connections afterwards, or a gateway responded instead of the server.
    var uncountedRequest: UnansweredRequest?

    /// The maximum number of uncounted bytes. The server may have stored such bytes before it failed, but its offset does not include them.
    var uncounted: Int64?

    /// The time at which the server will remove the upload, in seconds since 1970 by the server's clock (`Upload-Expires` of tus, or the
    /// lifetime in `Upload-Limit` of the IETF protocol).
    var expires: Int?

    /// The last `PATCH`, or creation with content (IETF), if the request got no response. The next attempt uses this information to
    /// detect proxies that buffer requests until they are complete, and bytes that the server's offset does not include.
    var unanswered: UnansweredRequest?
}

/// A request with content to which the server did not respond. A gateway may have responded instead.
struct UnansweredRequest: Codable, Hashable, Sendable {
    /// The offset at which the request started.
    var offset: Int64
    /// The minimum number of bytes that the network accepted.
    var accepted: Int64
    /// Whether the process that sent the request observed how the request ended; nil if that process cancelled the request or was killed.
    var hasObservedEnd: Bool?

    /// The names in stored checkpoints, which must not change.
    private enum CodingKeys: String, CodingKey {
        case offset, accepted = "taken", hasObservedEnd = "wasServerThere"
    }
}

extension RemoteUpload {
    /// The valid sizes and positions of an upload in bytes: up to 64 PiB.
    static let sizes: ClosedRange<Int64> = 0...1 << 56

    /// The last `PATCH`, if the server may have uncounted bytes of this request. Either the request is the ``uncountedRequest``, or it ended
    /// early because of a pause or because the process was killed. In the second case, the server may have failed at the same time.
    var possiblyUncounted: UnansweredRequest? { uncountedRequest ?? unanswered.flatMap { $0.hasObservedEnd == true ? nil : $0 } }
}

extension Int64 {
    /// Limits a stored position to the range of valid positions, 0 to 64 PiB. Sums of such positions do not overflow.
    fileprivate mutating func clampPosition() { self = Swift.min(Swift.max(0, self), RemoteUpload.sizes.upperBound) }
}

extension RemoteUpload {
    /// Limits each position to the valid range, because a damaged checkpoint can have any value.
    fileprivate mutating func clamp() {
        confirmed?.clampPosition()
        refusedOffset?.clampPosition()
        unverified?.clampPosition()
        uncounted?.clampPosition()
        for request in [\RemoteUpload.uncountedRequest, \.unanswered] {
            self[keyPath: request]?.offset.clampPosition()
            self[keyPath: request]?.accepted.clampPosition()
        }
    }
}

/// The data that a file's transfer needs to resume.
struct TUSCheckpoint: Codable, Sendable {
    /// The upload of the whole file; with segments, the final upload, which the server concatenates from the segments.
    var whole = RemoteUpload()

    /// The uploads of the file's segments, in order; nil for a file without segments.
    var segments: [RemoteUpload]?

    /// The size of each segment except the last, which may be smaller.
    var segmentSize: Int64?

    /// Whether the final upload was requested. It may exist even if no response arrived.
    var asksForWhole: Bool?

    /// The maximum number of bytes of one request, if a limit was known when the checkpoint was saved.
    var chunkLimit: Int64?

    private enum CodingKeys: String, CodingKey {
        case segments = "parts", segmentSize = "partSize", asksForWhole, chunkLimit
    }

    init(whole: RemoteUpload = RemoteUpload()) {
        self.whole = whole
    }

    /// Creates the checkpoint for a first attempt.
    ///
    /// - Parameter url: The URL of an upload that the app created; nil if the attempt creates the upload.
    init(given url: String?) {
        whole = RemoteUpload(url: url, isGiven: url == nil ? nil : true)
    }

    /// Creates a checkpoint that lists uploads to remove.
    init(leftovers urls: [String]) {
        segments = urls.map { RemoteUpload(url: $0) }
        segmentSize = 1
    }

    /// Parses a checkpoint; nil if it is not a valid checkpoint of this transport.
    init?(_ checkpoint: Checkpoint) {
        guard let decoded = try? JSONDecoder().decode(TUSCheckpoint.self, from: checkpoint.data) else { return nil }
        guard decoded.segments == nil || decoded.segmentSize.map({ $0 > 0 }) == true else { return nil }
        self = decoded
        whole.clamp()
        segmentSize?.clampPosition()
        if let limit = chunkLimit, limit < 1 { chunkLimit = nil }
        segments = segments?.map { segment in
            var segment = segment
            segment.clamp()
            segment.confirmed = segment.confirmed.map { min($0, segmentSize ?? $0) }
            return segment
        }
    }

    init(from decoder: any Decoder) throws {
        whole = try RemoteUpload(from: decoder)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        segments = try container.decodeIfPresent([RemoteUpload].self, forKey: .segments)
        segmentSize = try container.decodeIfPresent(Int64.self, forKey: .segmentSize)
        asksForWhole = try container.decodeIfPresent(Bool.self, forKey: .asksForWhole)
        chunkLimit = try container.decodeIfPresent(Int64.self, forKey: .chunkLimit)
    }

    func encode(to encoder: any Encoder) throws {
        try whole.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(segments, forKey: .segments)
        try container.encodeIfPresent(segmentSize, forKey: .segmentSize)
        try container.encodeIfPresent(asksForWhole, forKey: .asksForWhole)
        try container.encodeIfPresent(chunkLimit, forKey: .chunkLimit)
    }

    /// Returns the checkpoint in the form that the queue stores.
    ///
    /// - Parameter limit: The maximum number of bytes to report as confirmed.
    func encoded(atMost limit: Int64) throws -> Checkpoint {
        Checkpoint(
            data: try JSONEncoder().encode(self), confirmed: min(confirmed, limit),
            expiresAt: expires.map { Date(timeIntervalSince1970: TimeInterval($0)) })
    }

    /// The time at which the first of the uploads expires, in seconds since 1970.
    private var expires: Int? {
        ([whole] + (segments ?? [])).compactMap(\.expires).min()
    }

    /// The number of bytes of the file that the server confirmed. With segments, these bytes are not contiguous.
    var confirmed: Int64 {
        segments.map { Self.sum($0, \.confirmed) } ?? whole.confirmed ?? 0
    }

    /// The number of bytes that the server kept without comparing their checksum.
    var unverified: Int64 { Self.sum([whole] + (segments ?? []), \.unverified) }

    /// The number of uncounted bytes that the server may have, over all uploads.
    var uncounted: Int64 { Self.sum([whole] + (segments ?? []), \.uncounted) }

    /// Returns the sum of a property over all uploads, limited to avoid overflow.
    private static func sum(_ uploads: [RemoteUpload], _ number: (RemoteUpload) -> Int64?) -> Int64 {
        uploads.reduce(0) { min($0 + (number($1) ?? 0), 1 << 62) }
    }

    var urls: [String] { (segments ?? []).compactMap(\.url) + (whole.url.map { [$0] } ?? []) }

    /// The URLs of the uploads that belong to this transfer alone. Excludes an upload that the app supplied, because a later attempt may have
    /// completed that upload.
    var ownURLs: [String] { whole.isGiven == true ? (segments ?? []).compactMap(\.url) : urls }
}
