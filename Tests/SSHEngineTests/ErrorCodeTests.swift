import SSHEngine
import Testing
import TransferCore

@Suite struct ErrorCodeTests {
    private func error(_ code: CInt) -> TransferError { SSHErrorCode.transferError(code, at: "files.example.com", cause: "words") }

    /// libssh2 uses `LIBSSH2_ERROR_PROTO` (-14) for an invalid packet, and `LIBSSH2_ERROR_OUT_OF_BOUNDARY` (-41) for a packet of an impossible
    /// length. The bytes that follow may not be the start of a packet.
    @Test(arguments: [-14, -41] as [CInt]) func `an invalid packet ends the connection`(code: CInt) {
        #expect(SSHErrorCode.meansLost(code))
        let error = error(code)
        #expect(error.failureClass == .transient && error.code == .invalidResponse && error.cause == "words")
        #expect(error.message == "The server files.example.com sent an invalid SSH packet.")
    }

    /// `LIBSSH2_ERROR_INVALID_MAC` (-4) and `LIBSSH2_ERROR_DECRYPT` (-12).
    @Test(arguments: [-4, -12] as [CInt]) func `damaged data ends the connection`(code: CInt) {
        #expect(SSHErrorCode.meansLost(code))
        #expect(error(code).message == "Data from the server files.example.com was damaged in transit.")
    }

    /// `LIBSSH2_ERROR_CHANNEL_CLOSED` (-26).
    @Test func `a closed channel does not end the connection`() {
        #expect(!SSHErrorCode.meansLost(-26))
    }
}
