import TransferCore

/// The policy for the size of chunks. A chunk is the content of one `PATCH`.
struct ChunkPlan {
    /// The minimum chunk size, in bytes, after automatic reductions. A network path that requires even smaller chunks is unusable in practice.
    static let minimumReducedSize: Int64 = 256 * 1024
    /// The maximum chunk size, in bytes, after the first reduction, regardless of the size of the failed request.
    private static let maximumReducedSize: Int64 = 64 << 20
    /// The maximum number of sent bytes that this machine buffers. If the network accepted more, the excess has left the machine.
    static let maximumBuffered: Int64 = 1 << 20
    /// The number of sent bytes beyond which an interruption no longer changes the resulting chunk size.
    static let significantCount = 2 * maximumReducedSize

    /// The maximum chunk size in bytes, from the session, the endpoint's settings or the checksum's default; nil for no limit.
    var configuredSize: Int64?
    let multiple: Int64
    /// The server's limits for this upload (IETF).
    var limits = UploadLimits()
    let profiles: ServerProfileCache
    let address: String

    /// Returns how many of the remaining bytes the next request sends.
    func next(remaining: Int64) -> Int64 {
        let wanted = min(configuredSize ?? .max, profiles.quirks(of: address).chunkLimit ?? .max)
        let limit = min(max(wanted, limits.minimumAppendSize ?? 0), max(1, limits.maximumAppendSize ?? .max))
        guard limit < remaining else { return remaining }
        return min(remaining, max(multiple, limit - limit % multiple))
    }

    /// Reduces the size of later requests after a request with `size` bytes failed because it was too large.
    ///
    /// - Returns: Whether a smaller size is possible.
    func shrink(below size: Int64) -> Bool {
        let limit = max(Self.minimumReducedSize, min(size / 2, Self.maximumReducedSize))
        guard limit < size, multiple < size else { return false }
        profiles.learn(of: address) { $0.limitChunks(to: limit) }
        return true
    }

    /// Learns from an interrupted `PATCH`. If many bytes left this machine but none arrived, a proxy probably buffers requests until they
    /// are complete, so later requests must be smaller.
    ///
    /// - Parameter offset: The server's offset when the upload resumes.
    func learn(from interrupted: UnansweredRequest?, at offset: Int64) {
        guard let interrupted, offset <= interrupted.offset, interrupted.accepted > Self.maximumBuffered else { return }
        _ = shrink(below: interrupted.accepted)
    }
}
