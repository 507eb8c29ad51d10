/// The time that the files of a session spent in each phase of a transfer. Shows whether the network, the server or this machine is slow.
///
/// Each value is the sum over all attempts of all files, in seconds. If several files are in flight, the sum of all values can exceed the
/// running time of the session. Attempts that ended with a crash of the process are missing. A file with several segments counts as transferring
/// while any of them moves bytes.
public struct TransferTimes: Hashable, Sendable, Codable {
    /// The time before the first byte of content moved: for connecting, for logging in, and for requests that create or find an upload.
    public var secondsConnecting = 0.0
    /// The time in which content moved.
    public var secondsTransferring = 0.0
    /// The time in which a request was sent completely, but the server had not responded.
    public var secondsAwaitingResponse = 0.0
    /// The time in which an attempt waited until this machine had stored its progress.
    public var secondsStoring = 0.0
    /// The time in which rate limits allowed no bytes.
    public var secondsRateLimited = 0.0

    /// Creates times of zero.
    public init() {}

    /// The sum of all values, in seconds.
    public var total: Double {
        secondsConnecting + secondsTransferring + secondsAwaitingResponse + secondsStoring + secondsRateLimited
    }

    static func += (left: inout TransferTimes, right: TransferTimes) {
        left.secondsConnecting += right.secondsConnecting
        left.secondsTransferring += right.secondsTransferring
        left.secondsAwaitingResponse += right.secondsAwaitingResponse
        left.secondsStoring += right.secondsStoring
        left.secondsRateLimited += right.secondsRateLimited
    }
}
