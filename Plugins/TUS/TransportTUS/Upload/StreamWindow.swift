/// How much of a stream one request brings while more comes.
///
/// The producer may be so far ahead of what is confirmed, and a request is confirmed at its end. One that brings all there is has to be followed by
/// one that brings next to nothing, as the producer could not go on meanwhile. One that brings half of the way ahead is followed by another like it,
/// and the producer never rests for longer than the network does.
struct StreamWindow {
    /// Less than this is not divided.
    private static let smallest: Int64 = 1 << 20

    /// How far the producer was ahead of what was confirmed, at the most.
    private var ahead: Int64 = 0
    /// What was confirmed while the last request was under way.
    private var confirmed: Int64?

    /// How many of the bytes from an offset, which is confirmed now, to what there is now the next request brings.
    mutating func part(from offset: Int64, to end: Int64) -> Int64 {
        ahead = max(ahead, end - (confirmed ?? offset))
        confirmed = offset
        return min(end - offset, max(Self.smallest, ahead / 2))
    }
}
