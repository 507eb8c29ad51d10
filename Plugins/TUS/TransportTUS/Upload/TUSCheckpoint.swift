import Foundation
import TransferCore

/// What is known of one upload at the server.
struct RemoteUpload: Codable, Sendable {
    /// Its address, absolute; nil from before the creation is asked for until its answer arrived.
    var url: String?

    /// How many bytes of it the server confirmed.
    var confirmed: Int64?

    /// The offset at which the server answered a `PATCH` with 400, if it did: a second one there is final.
    var refusedOffset: Int64?

    /// How many of its bytes the server kept of requests that broke off: it compares checksums at their ends only.
    var unverified: Int64?

    /// The last `PATCH`, if it was cut and the server took no connection then: it may have what it does not count.
    var doubtful: UnansweredRequest?

    /// How many of its bytes the server may have without counting them: it was gone after it took them, and said then that it had none of them.
    var uncounted: Int64?

    /// When the server means to remove it, in seconds since 1970 by the server's clock (tus 1.0.0, "Upload-Expires").
    var expires: Int?

    /// The last `PATCH`, if it was not answered and brought enough to tell something of the path: the process may have ended meanwhile.
    var unanswered: UnansweredRequest?
}

/// A `PATCH` without an answer.
struct UnansweredRequest: Codable, Hashable, Sendable {
    /// Where it began in the upload.
    var offset: Int64
    /// How many bytes the network took of it at least.
    var taken: Int64
    /// Whether the process that sent it saw the connection break while the server was there; nil if it ended the request, or ended with it.
    var isWitnessed: Bool?
}

extension RemoteUpload {
    /// The sizes and positions that an upload can have, in bytes: 64 PiB at most, which no file system of today holds.
    static let sizes: ClosedRange<Int64> = 0...1 << 56

    /// The last `PATCH`, if the server may have bytes of it that it does not count: the server was gone after it, or the request was abandoned (by a
    /// pause, or with the process), so the server may have ended at the same moment.
    var doubt: UnansweredRequest? { doubtful ?? unanswered.flatMap { $0.isWitnessed == true ? nil : $0 } }
}

extension Int64 {
    /// Moves a stored position to the nearest that a file can have: 0 to 64 PiB. Sums of such positions do not overflow.
    fileprivate mutating func clampPosition() { self = Swift.min(Swift.max(0, self), RemoteUpload.sizes.upperBound) }
}

extension RemoteUpload {
    /// Clamps each position, as a damaged store can hold any.
    fileprivate mutating func clamp() {
        confirmed?.clampPosition()
        refusedOffset?.clampPosition()
        unverified?.clampPosition()
        uncounted?.clampPosition()
        for request in [\RemoteUpload.doubtful, \.unanswered] {
            self[keyPath: request]?.offset.clampPosition()
            self[keyPath: request]?.taken.clampPosition()
        }
    }
}

/// What a file's transfer needs to go on later.
struct TUSCheckpoint: Codable, Sendable {
    /// The upload of the whole file; where there are parts, the one that puts them together.
    var whole = RemoteUpload()

    /// The uploads of the file's parts, in order; nil for a file that is sent as one.
    var parts: [RemoteUpload]?

    /// How many bytes each part has, but for the last, which has the rest.
    var partSize: Int64?

    /// Whether the server was asked to put the parts together, and may have done so without that its answer arrived.
    var asksForWhole: Bool?

    /// The most bytes that one request may bring, as far as that was found out when this was saved.
    var chunkLimit: Int64?

    private enum CodingKeys: String, CodingKey {
        case parts, partSize, asksForWhole, chunkLimit
    }

    init(whole: RemoteUpload = RemoteUpload()) {
        self.whole = whole
    }

    /// Uploads that are to be removed, and nothing more.
    init(leftovers urls: [String]) {
        parts = urls.map { RemoteUpload(url: $0) }
        partSize = 1
    }

    /// Reads a checkpoint; nil if it is not one of this transport.
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

    /// - Parameter limit: The most bytes that it may vouch for.
    func encoded(atMost limit: Int64) throws -> Checkpoint {
        Checkpoint(
            data: try JSONEncoder().encode(self), confirmed: min(confirmed, limit),
            expiresAt: expires.map { Date(timeIntervalSince1970: TimeInterval($0)) })
    }

    /// When the first of the uploads is removed.
    private var expires: Int? {
        ([whole] + (parts ?? [])).compactMap(\.expires).min()
    }

    /// How many bytes of the file the server confirmed. Where there are parts, these bytes are not all at the file's start.
    var confirmed: Int64 {
        parts.map { Self.sum($0, \.confirmed) } ?? whole.confirmed ?? 0
    }

    /// How many bytes of the file the server compared with no checksum, though it was sent some.
    var unverified: Int64 { Self.sum([whole] + (parts ?? []), \.unverified) }

    /// How many bytes the server may have besides those that it counts.
    var uncounted: Int64 { Self.sum([whole] + (parts ?? []), \.uncounted) }

    /// A number of all uploads, added up; a sum that no file can have stays within what a number holds.
    private static func sum(_ uploads: [RemoteUpload], _ number: (RemoteUpload) -> Int64?) -> Int64 {
        uploads.reduce(0) { min($0 + (number($1) ?? 0), 1 << 62) }
    }

    /// The addresses of all uploads that were made.
    var urls: [String] { (parts ?? []).compactMap(\.url) + (whole.url.map { [$0] } ?? []) }
}
