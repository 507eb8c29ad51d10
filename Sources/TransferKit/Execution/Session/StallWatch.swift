/// Detects stalled attempts: for too long, the network accepted no byte and the other end confirmed none, although the rate limits allowed
/// bytes, the attempt did no other work and, for a stream, there were bytes to send.
///
/// After the last byte of a request, the server may take longer, because it confirms a PATCH only at its end.
package struct StallWatch {
    private struct Sample: Equatable {
        let sent: Int64
        let confirmed: Int64
        let activityCount: Int

        init(_ file: ActiveFile) {
            sent = file.sent
            confirmed = file.confirmed
            activityCount = file.activityCount
        }
    }

    package let stallTimeout: Duration
    package let responseTimeout: Duration
    private var last: Sample
    private var lastChange: Duration

    package init(_ file: ActiveFile, stallTimeout: Duration, responseTimeout: Duration, at uptime: Duration) {
        self.stallTimeout = stallTimeout
        self.responseTimeout = responseTimeout
        last = Sample(file)
        lastChange = uptime
    }

    /// Takes a sample; true if the attempt is stalled.
    package mutating func sample(_ file: ActiveFile, at uptime: Duration) -> Bool {
        let sample = Sample(file)
        guard sample == last, !file.awaitsSource else {
            last = sample
            lastChange = uptime
            return false
        }
        let limit = file.isAnswerAwaited ? max(stallTimeout, responseTimeout) : stallTimeout
        return uptime - lastChange >= limit
    }
}
