import CSSH2
import TransferCore

extension SSHSession {
    /// Returns whether an error code means that the connection is lost for all channels.
    func isLost(_ code: CInt) -> Bool {
        switch code {
        case LIBSSH2_ERROR_SOCKET_SEND, LIBSSH2_ERROR_SOCKET_RECV, LIBSSH2_ERROR_SOCKET_DISCONNECT, LIBSSH2_ERROR_SOCKET_TIMEOUT,
            LIBSSH2_ERROR_TIMEOUT, LIBSSH2_ERROR_BAD_SOCKET, LIBSSH2_ERROR_DECRYPT, LIBSSH2_ERROR_INVALID_MAC, LIBSSH2_ERROR_BAD_USE:
            true
        default: false
        }
    }

    /// Returns the error for a call that failed after authentication.
    func failure(_ code: CInt) -> TransferError {
        let words = lastError.text
        let cause = [traffic.disconnectReason, words.isEmpty ? nil : words, "libssh2 error \(code)"].compactMap { $0 }.joined(
            separator: "; ")
        switch code {
        case LIBSSH2_ERROR_ALLOC:
            return TransferError(.noSpace, .internalFailure, "This machine is out of memory for the connection to \(server).", cause: cause)
        case LIBSSH2_ERROR_INVALID_MAC, LIBSSH2_ERROR_DECRYPT, LIBSSH2_ERROR_PROTO:
            return TransferError(.transient, .invalidResponse, "Data from the server \(server) was damaged in transit.", cause: cause)
        case LIBSSH2_ERROR_BAD_USE:
            return TransferError(
                .transient, .internalFailure, "The connection to \(server) lost synchronization. This is a bug in TransferKit.",
                cause: cause)
        default:
            return TransferError(.transient, .connectionLost, "The connection to the server \(server) broke.", cause: cause)
        }
    }
}
