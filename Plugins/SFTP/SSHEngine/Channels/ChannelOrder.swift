import TransferCore
import TransportSupport

/// A channel that somebody wants.
struct ChannelOrder: Sendable {
    typealias ID = UInt64

    /// What runs at its other end (RFC 4254, section 6.5).
    enum Program: Sendable {
        case subsystem(String)
        case command([UInt8])
    }

    /// How it ended.
    struct End: Sendable {
        var error: TransferError?
        var status: Int32?
        var signal: String?
        var errorOutput: [UInt8] = []
    }

    let id: ID
    let program: Program
    let handler: any SSHChannelHandler
    /// Told once whether the program was started.
    let opened: Once<Void>
    /// Told once, if it was started, when the channel is gone.
    var ended: @Sendable (End) -> Void = { _ in }
}
