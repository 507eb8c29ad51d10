/// Detects stalled attempts.
///
/// An attempt is stalled if, during the stall timeout, the network accepts or delivers no bytes and the other end confirms no bytes. Time
/// does not count while the rate limits allow no bytes, the attempt does other work, or the file waits for its turn or for data from the
/// app.
///
/// While the attempt waits for a response (``ActiveFile/isResponseAwaited``), the longer of the stall timeout and the response timeout
/// applies. For example, a tus server confirms the bytes of a PATCH request only at the end of the request.
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

    /// Takes a sample. Returns whether the attempt is stalled.
    package mutating func sample(_ file: ActiveFile, at uptime: Duration) -> Bool {
        let sample = Sample(file)
        guard sample == last, !file.awaitsSource else {
            last = sample
            lastChange = uptime
            return false
        }
        let limit = file.isResponseAwaited ? max(stallTimeout, responseTimeout) : stallTimeout
        return uptime - lastChange >= limit
    }
}
