import TransferCore

/// The number of bytes of each `PATCH`.
struct ChunkPlan {
    /// Smaller chunks are not tried automatically: a path that allows no more is useless.
    static let floor: Int64 = 256 * 1024
    /// Where halving starts, however large the failed request was.
    private static let ceiling: Int64 = 64 << 20
    /// The number of bytes that the buffers of this machine and its socket can hold. Bytes beyond this have left the machine.
    static let buffered: Int64 = 1 << 20
    /// An interruption after more than this leads to no other size.
    static let significant = 2 * ceiling

    /// The maximum of the session, the endpoint's settings or a checksum.
    var wanted: Int64?
    let multiple: Int64
    let profiles: ServerProfileCache
    let address: String

    /// The number of the remaining bytes that the next request sends.
    func next(remaining: Int64) -> Int64 {
        let limit = min(wanted ?? .max, profiles.quirks(of: address).chunkLimit ?? .max)
        guard limit < remaining else { return remaining }
        return min(remaining, max(multiple, limit - limit % multiple))
    }

    /// Reduces the size of later requests, after a request with this many bytes was too large.
    ///
    /// - Returns: Whether a smaller size is possible.
    func shrink(below size: Int64) -> Bool {
        let limit = max(Self.floor, min(size / 2, Self.ceiling))
        guard limit < size, multiple < size else { return false }
        profiles.learn(of: address) { $0.limitChunks(to: limit) }
        return true
    }

    /// Learns from an interrupted `PATCH`: if many bytes left this machine and none arrived, a proxy holds requests back until they are
    /// complete.
    ///
    /// - Parameter offset: The server's offset when the upload resumes.
    func learn(from cut: UnansweredRequest?, at offset: Int64) {
        guard let cut, offset <= cut.offset, cut.taken > Self.buffered else { return }
        _ = shrink(below: cut.taken)
    }
}
