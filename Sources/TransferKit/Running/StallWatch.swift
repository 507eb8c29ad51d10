/// Decides when an attempt hangs: neither a byte taken by the network nor one confirmed for too long.
///
/// After the last byte was sent, the server may take longer: a PATCH is confirmed at its end only.
package struct StallWatch {
    package let stallTimeout: Duration
    package let responseTimeout: Duration
    private var sent: Int64
    private var confirmed: Int64
    private var lastChange: Duration

    package init(_ file: ActiveFile, stallTimeout: Duration, responseTimeout: Duration, at uptime: Duration) {
        self.stallTimeout = stallTimeout
        self.responseTimeout = responseTimeout
        sent = file.sent
        confirmed = file.confirmed
        lastChange = uptime
    }

    /// Takes a sample; true if the attempt hangs.
    package mutating func sample(_ file: ActiveFile, at uptime: Duration) -> Bool {
        if file.sent != sent || file.confirmed != confirmed {
            sent = file.sent
            confirmed = file.confirmed
            lastChange = uptime
            return false
        }
        let limit = sent >= file.size ? max(stallTimeout, responseTimeout) : stallTimeout
        return uptime - lastChange >= limit
    }
}
