import TransferCore

/// How many bytes each `PATCH` brings.
struct ChunkPlan {
    /// Smaller chunks than this are not tried by itself: a path that takes no more is of no use.
    static let floor: Int64 = 256 * 1024
    /// Where the halving begins, however large the request was that did not get through.
    private static let ceiling: Int64 = 64 << 20
    /// What may sit in the buffers of this machine and its socket: bytes taken beyond this left it.
    static let buffered: Int64 = 1 << 20
    /// A cut after more than this leads to no other size.
    static let telling = 2 * ceiling

    /// The most that the session, the endpoint's settings or a checksum ask for.
    var wanted: Int64?
    let multiple: Int64
    let memory: EndpointMemory
    let address: String

    /// How many of the bytes that remain the next request brings.
    func next(remaining: Int64) -> Int64 {
        let limit = min(wanted ?? .max, memory.habits(of: address).chunkLimit ?? .max)
        guard limit < remaining else { return remaining }
        return min(remaining, max(multiple, limit - limit % multiple))
    }

    /// Asks for less in future, after a request with this many bytes was too large.
    ///
    /// - Returns: Whether less is possible.
    func shrink(below size: Int64) -> Bool {
        let limit = max(Self.floor, min(size / 2, Self.ceiling))
        guard limit < size, multiple < size else { return false }
        memory.learn(of: address) { $0.limitChunks(to: limit) }
        return true
    }

    /// Learns from what became of a `PATCH` that was cut: where many bytes left this machine and none arrived, something on the way keeps a
    /// request back until it is whole.
    ///
    /// - Parameter offset: Where the server stands when the upload goes on.
    func learn(from cut: UnansweredRequest?, at offset: Int64) {
        guard let cut, offset <= cut.offset, cut.taken > Self.buffered else { return }
        _ = shrink(below: cut.taken)
    }
}
