import CSSH2
package import TransferCore

/// Interprets the error codes of libssh2 (libssh2.h) after authentication.
package enum SSHErrorCode {
    /// Returns whether an error code means that the connection is lost for all channels.
    package static func meansLost(_ code: CInt) -> Bool {
        switch code {
        case LIBSSH2_ERROR_SOCKET_SEND, LIBSSH2_ERROR_SOCKET_RECV, LIBSSH2_ERROR_SOCKET_DISCONNECT, LIBSSH2_ERROR_SOCKET_TIMEOUT,
            LIBSSH2_ERROR_TIMEOUT, LIBSSH2_ERROR_BAD_SOCKET, LIBSSH2_ERROR_DECRYPT, LIBSSH2_ERROR_INVALID_MAC, LIBSSH2_ERROR_BAD_USE,
            LIBSSH2_ERROR_PROTO, LIBSSH2_ERROR_OUT_OF_BOUNDARY:
            true
        default: false
        }
    }

    /// Returns the error for a call that failed with an error code.
    ///
    /// - Parameters:
    ///   - server: The name of the server as shown in messages.
    ///   - cause: The details for the error's `cause`.
    package static func transferError(_ code: CInt, at server: String, cause: String) -> TransferError {
        switch code {
        case LIBSSH2_ERROR_ALLOC:
            TransferError(.noSpace, .internalFailure, "This machine is out of memory for the connection to \(server).", cause: cause)
        case LIBSSH2_ERROR_INVALID_MAC, LIBSSH2_ERROR_DECRYPT:
            TransferError(.transient, .invalidResponse, "Data from the server \(server) was damaged in transit.", cause: cause)
        // LIBSSH2_ERROR_OUT_OF_BOUNDARY means an impossible packet length.
        case LIBSSH2_ERROR_PROTO, LIBSSH2_ERROR_OUT_OF_BOUNDARY:
            TransferError(.transient, .invalidResponse, "The server \(server) sent an invalid SSH packet.", cause: cause)
        case LIBSSH2_ERROR_BAD_USE:
            TransferError(
                .transient, .internalFailure, "The connection to \(server) lost synchronization. This is a bug in TransferKit.",
                cause: cause)
        default: TransferError(.transient, .connectionLost, "The connection to the server \(server) broke.", cause: cause)
        }
    }
}

extension SSHSession {
    func isLost(_ code: CInt) -> Bool { SSHErrorCode.meansLost(code) }

    func failure(_ code: CInt) -> TransferError {
        let text = lastError.text
        let cause = [traffic.disconnectReason, text.isEmpty ? nil : text, "libssh2 error \(code)"].compactMap { $0 }.joined(
            separator: "; ")
        return SSHErrorCode.transferError(code, at: server, cause: cause)
    }
}
