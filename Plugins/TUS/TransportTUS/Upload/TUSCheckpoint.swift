import Foundation
import TransferCore

/// One upload on the server.
struct RemoteUpload: Codable, Sendable {
    /// The absolute URL; nil until the response to the creation.
    var url: String?

    /// Whether the app gave the URL (`AttemptOptions.uploadURL`), so that all attempts use the same upload.
    var isGiven: Bool?

    /// The number of bytes that the server confirmed.
    var confirmed: Int64?

    /// The offset at which the server answered a `PATCH` with 400: a second one there is final.
    var refusedOffset: Int64?

    /// The number of bytes that the server kept of interrupted requests, unverified: it compares checksums only at the end of a request.
    var unverified: Int64?

    /// The last `PATCH`, if it was interrupted and the server then refused connections: the server may have uncounted bytes of it.
    var uncountedRequest: UnansweredRequest?

    /// The number of uncounted bytes that the server may have: it failed after it took them, and later reported none of them.
    var uncounted: Int64?

    /// When the server will remove the upload, in seconds since 1970 by the server's clock (tus 1.0.0, "Upload-Expires").
    var expires: Int?

    /// The last `PATCH`, if it was unanswered and long enough to show something about the path, for a process that follows a killed one.
    var unanswered: UnansweredRequest?
}

/// A `PATCH` without a response.
struct UnansweredRequest: Codable, Hashable, Sendable {
    /// Its offset.
    var offset: Int64
    /// The minimum number of bytes that the network took.
    var taken: Int64
    /// Whether the process that sent it saw the connection break while the server was there; nil if the process ended the request, or ended
    /// itself.
    var wasServerThere: Bool?
}

extension RemoteUpload {
    /// The valid sizes and positions of an upload in bytes: up to 64 PiB.
    static let sizes: ClosedRange<Int64> = 0...1 << 56

    /// The last `PATCH`, if the server may have uncounted bytes of it: the server was gone after it, or the request was abandoned by a
    /// pause or a killed process, so the server may have ended at the same moment.
    var possiblyUncounted: UnansweredRequest? { uncountedRequest ?? unanswered.flatMap { $0.wasServerThere == true ? nil : $0 } }
}

extension Int64 {
    /// Clamps a stored position to those that a file can have: 0 to 64 PiB. Sums of such positions do not overflow.
    fileprivate mutating func clampPosition() { self = Swift.min(Swift.max(0, self), RemoteUpload.sizes.upperBound) }
}

extension RemoteUpload {
    /// Clamps each position, because a damaged store can have any value.
    fileprivate mutating func clamp() {
        confirmed?.clampPosition()
        refusedOffset?.clampPosition()
        unverified?.clampPosition()
        uncounted?.clampPosition()
        for request in [\RemoteUpload.uncountedRequest, \.unanswered] {
            self[keyPath: request]?.offset.clampPosition()
            self[keyPath: request]?.taken.clampPosition()
        }
    }
}

/// The data that a file's transfer needs to resume.
struct TUSCheckpoint: Codable, Sendable {
    /// The upload of the whole file; with segments, the final upload that concatenates them.
    var whole = RemoteUpload()

    /// The uploads of the file's segments, in order; nil for a file that is sent as one.
    var parts: [RemoteUpload]?

    /// The size of each segment but the last, which is smaller.
    var partSize: Int64?

    /// Whether the final upload was requested, and may have been created although no response arrived.
    var asksForWhole: Bool?

    /// The maximum number of bytes of one request, as far as known when this was saved.
    var chunkLimit: Int64?

    private enum CodingKeys: String, CodingKey {
        case parts, partSize, asksForWhole, chunkLimit
    }

    init(whole: RemoteUpload = RemoteUpload()) {
        self.whole = whole
    }

    /// The checkpoint that a first attempt starts from.
    ///
    /// - Parameter url: The URL of an upload that the app created; nil to create one.
    init(given url: String?) {
        whole = RemoteUpload(url: url, isGiven: url == nil ? nil : true)
    }

    /// A checkpoint of uploads to remove.
    init(leftovers urls: [String]) {
        parts = urls.map { RemoteUpload(url: $0) }
        partSize = 1
    }

    /// Parses a checkpoint; nil if it is not from this transport.
    init?(_ checkpoint: Checkpoint) {
        guard let decoded = try? JSONDecoder().decode(TUSCheckpoint.self, from: checkpoint.data) else { return nil }
        guard decoded.parts == nil || decoded.partSize.map({ $0 > 0 }) == true else { return nil }
        self = decoded
        whole.clamp()
        partSize?.clampPosition()
        if let limit = chunkLimit, limit < 1 { chunkLimit = nil }
        parts = parts?.map { part in
            var part = part
            part.clamp()
            part.confirmed = part.confirmed.map { min($0, partSize ?? $0) }
            return part
        }
    }

    init(from decoder: any Decoder) throws {
        whole = try RemoteUpload(from: decoder)
        let container = try decoder.container(keyedBy: CodingKeys.self)
        parts = try container.decodeIfPresent([RemoteUpload].self, forKey: .parts)
        partSize = try container.decodeIfPresent(Int64.self, forKey: .partSize)
        asksForWhole = try container.decodeIfPresent(Bool.self, forKey: .asksForWhole)
        chunkLimit = try container.decodeIfPresent(Int64.self, forKey: .chunkLimit)
    }

    func encode(to encoder: any Encoder) throws {
        try whole.encode(to: encoder)
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encodeIfPresent(parts, forKey: .parts)
        try container.encodeIfPresent(partSize, forKey: .partSize)
        try container.encodeIfPresent(asksForWhole, forKey: .asksForWhole)
        try container.encodeIfPresent(chunkLimit, forKey: .chunkLimit)
    }

    /// - Parameter limit: The maximum number of bytes to confirm.
    func encoded(atMost limit: Int64) throws -> Checkpoint {
        Checkpoint(
            data: try JSONEncoder().encode(self), confirmed: min(confirmed, limit),
            expiresAt: expires.map { Date(timeIntervalSince1970: TimeInterval($0)) })
    }

    /// When the first of the uploads expires.
    private var expires: Int? {
        ([whole] + (parts ?? [])).compactMap(\.expires).min()
    }

    /// The number of bytes of the file that the server confirmed. With segments, not all of them are at the file's start.
    var confirmed: Int64 {
        parts.map { Self.sum($0, \.confirmed) } ?? whole.confirmed ?? 0
    }

    /// The number of bytes that the server kept without comparing their checksum.
    var unverified: Int64 { Self.sum([whole] + (parts ?? []), \.unverified) }

    /// The number of uncounted bytes that the server may have.
    var uncounted: Int64 { Self.sum([whole] + (parts ?? []), \.uncounted) }

    /// The sum of a number over all uploads, without overflow.
    private static func sum(_ uploads: [RemoteUpload], _ number: (RemoteUpload) -> Int64?) -> Int64 {
        uploads.reduce(0) { min($0 + (number($1) ?? 0), 1 << 62) }
    }

    /// The URLs of all uploads.
    var urls: [String] { (parts ?? []).compactMap(\.url) + (whole.url.map { [$0] } ?? []) }

    /// The URLs of the uploads that only this transfer uses. A given one may have been completed by a later attempt.
    var ownURLs: [String] { whole.isGiven == true ? (parts ?? []).compactMap(\.url) : urls }
}
