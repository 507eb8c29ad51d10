/// Decides when an attempt hangs: neither a byte taken by the network nor one confirmed for too long, while the rate limits let bytes through, it is
/// not busy with something else and, of a stream, there are bytes to be sent.
///
/// After the last byte of a request was sent, the server may take longer: a PATCH is confirmed at its end only.
package struct StallWatch {
    private struct Sample: Equatable {
        let sent: Int64
        let confirmed: Int64
        let livelySigns: Int

        init(_ file: ActiveFile) {
            sent = file.sent
            confirmed = file.confirmed
            livelySigns = file.livelySigns
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

    /// Takes a sample; true if the attempt hangs.
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
