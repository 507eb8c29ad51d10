package import TransferCore

/// The two ends of a channel's bytes. Everything here is called on the connection's thread, which must not be blocked.
package protocol SSHChannelHandler: AnyObject, Sendable {
    /// Takes bytes that the server sent. The buffer is valid during the call only.
    func receive(_ bytes: UnsafeRawBufferPointer)

    /// Gives the next bytes to send; none if there are none now. Asked again once all of them are sent, after each ``receive(_:)``, and after
    /// each ``SSHChannel/wake()``.
    func bytesToSend() -> [UInt8]

    /// Told once that the channel ended, and called no more.
    ///
    /// - Parameter error: Why; nil if ``SSHChannel/close()`` or ``SSHConnection/close()`` ended it.
    func end(_ error: TransferError?)
}

/// An open channel of an ``SSHConnection``. May be used from any thread.
package final class SSHChannel: Sendable {
    private let id: ChannelOrder.ID
    private let mailbox: ConnectionMailbox

    init(id: ChannelOrder.ID, mailbox: ConnectionMailbox) {
        self.id = id
        self.mailbox = mailbox
    }

    /// Lets the connection ask ``SSHChannelHandler/bytesToSend()`` again. Cheap; not needed from within the handler's own functions.
    package func wake() {
        mailbox.wake()
    }

    /// Ends the channel. What the handler gave and is not sent yet may be lost.
    package func close() {
        mailbox.post(.close(id))
    }
}

/// What a command that ran at the server left behind.
package struct SSHCommandResult: Sendable {
    /// Its exit status; nil if a signal ended it, or the server does not say.
    package var status: Int32?
    /// The signal that ended it, without `SIG` (RFC 4254, section 6.10).
    package var signal: String?
    /// The first bytes that it wrote.
    package var output: [UInt8]
    /// The first 64 KiB of its complaints.
    package var errorOutput: [UInt8]
    /// Whether it wrote more than was kept.
    package var isOutputCut: Bool
}
