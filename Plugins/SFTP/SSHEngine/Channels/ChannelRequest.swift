import TransferCore
import TransportSupport

struct ChannelRequest: Sendable {
    typealias ID = UInt64

    /// The program that runs on the server (RFC 4254, section 6.5).
    enum Program: Sendable {
        case subsystem(String)
        case command([UInt8])
    }

    struct End: Sendable {
        var error: TransferError?
        var status: Int32?
        var signal: String?
        var errorOutput: [UInt8] = []
    }

    let id: ID
    let program: Program
    let handler: any SSHChannelHandler
    /// Resumed once: when the server has started the program or rejected the channel or the program, when the caller is cancelled, or when
    /// the connection ends.
    let opened: SingleResult<Void>
    /// Called at most once, after the channel has ended. If the program was started, it is always called.
    var ended: @Sendable (End) -> Void = { _ in }
}
