package import TransferCore

/// Receives and supplies the bytes of a channel. The connection calls the methods on its thread, so they must not block.
package protocol SSHChannelHandler: AnyObject, Sendable {
    /// Receives bytes from the server. The buffer is valid only during the call.
    func receive(_ bytes: UnsafeRawBufferPointer)

    /// Returns the next bytes to send, or an empty array if no bytes are ready. Called again after these bytes were sent, after each
    /// ``receive(_:)``, and after each ``SSHChannel/wake()``.
    func bytesToSend() -> [UInt8]

    /// Called once when the channel has ended or is being closed; no calls follow. Not called if the program was not started, or if the
    /// caller was cancelled before the program started.
    ///
    /// - Parameter error: The reason; nil if the client closed the channel or the connection, or if a command has exited.
    func end(_ error: TransferError?)
}

/// An open channel of an ``SSHConnection``. Can be used from any thread.
package final class SSHChannel: Sendable {
    private let id: ChannelRequest.ID
    private let mailbox: ConnectionMailbox

    init(id: ChannelRequest.ID, mailbox: ConnectionMailbox) {
        self.id = id
        self.mailbox = mailbox
    }

    /// Makes the connection call ``SSHChannelHandler/bytesToSend()`` again. Cheap. Not needed in the handler's own methods.
    package func wake() {
        mailbox.wake()
    }

    /// Closes the channel. Unsent bytes of the handler may be lost.
    package func close() {
        mailbox.post(.close(id))
    }
}

/// The result of a command on the server.
package struct SSHCommandResult: Sendable {
    /// The exit status; nil after a signal. 0 if the server reports neither.
    package var status: Int32?
    /// The signal that ended the command, without `SIG` (RFC 4254, section 6.10).
    package var signal: String?
    /// The beginning of the standard output, up to the limit that the caller of ``SSHConnection/run(_:input:outputLimit:)`` set.
    package var output: [UInt8]
    /// The first 64 KiB of the error output.
    package var errorOutput: [UInt8]
    /// Whether ``output`` is incomplete because the command exceeded the limit.
    package var isOutputTruncated: Bool
}
