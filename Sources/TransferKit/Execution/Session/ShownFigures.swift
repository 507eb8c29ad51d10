import TransferCore

/// The counts of sent and confirmed bytes that were last shown for a session.
///
/// After a pause, bytes that were sent but not confirmed are sent again. Even then, the shown counts do not decrease.
package struct ShownFigures: Sendable {
    private(set) var done: Int64 = 0
    private(set) var sent: Int64 = 0
    /// The part of ``done`` that is stored as confirmed after the run. The queue's totals also include the rest of ``done``, so that the totals do
    /// not decrease.
    var confirmed: Int64 = 0

    package init() {}

    init(_ statistics: SessionStatistics) {
        done = statistics.bytesDone
        sent = statistics.bytesSent
    }
}

extension SessionStatistics {
    /// Raises the byte counts to the previously shown counts. If the sizes of all files are known, limits the counts to the total size.
    mutating func neverFall(below shown: ShownFigures) {
        bytesDone = max(bytesDone, shown.done)
        bytesSent = max(bytesSent, bytesDone, shown.sent)
        guard filesUnsized == 0 else {
            // Some of the sent bytes may belong to a file of unknown size, so the sent bytes may exceed the known size.
            bytesKnown = max(bytesKnown, bytesSent)
            return
        }
        bytesDone = min(bytesDone, bytesKnown)
        bytesSent = min(bytesSent, bytesKnown)
    }
}
