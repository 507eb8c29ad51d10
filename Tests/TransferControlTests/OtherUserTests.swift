import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferControl
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Requests from other users. Normally, the permissions of the storage folder and the socket exclude other users. If these permissions were
/// changed, the listener still checks the client's user (unix(7), SO_PEERCRED).
@Suite(.enabled(if: geteuid() == 0, "Requires root to act as another user")) struct OtherUserTests {
    /// Sends a greeting as the user in the first argument, and prints the size of the response.
    private static let program = """
        import os, socket, sys
        os.setgid(int(sys.argv[1]))
        os.setuid(int(sys.argv[1]))
        client = socket.socket(socket.AF_UNIX)
        client.connect(sys.argv[2])
        response = b""
        try:
            client.sendall(bytes.fromhex(sys.argv[3]))
            client.shutdown(socket.SHUT_WR)
            while received := client.recv(65536):
                response += received
        except OSError:
            pass
        print(len(response))
        """

    @Test(arguments: [(65_534, false), (0, true)]) func rejectsOtherUsers(user: Int, getsResponse: Bool) async throws {
        try await ControlFixture.with { fixture in
            let socket = fixture.store.appending("control.sock")
            for path in [fixture.folder, fixture.store, socket] { #expect(unsafe chmod(path.string, 0o777) == 0) }
            let greeting = HostileClientTests.greeting.map { String(format: "%02x", $0) }.joined()
            let (status, output) = try await withCheckedThrowingContinuation { continuation in
                DispatchQueue.global().async {
                    continuation.resume(
                        with: Result {
                            try StartedProgram.run("python3", ["-c", Self.program, "\(user)", socket.string, greeting])
                        })
                }
            }
            #expect(status == 0)
            let bytes = Int(String(decoding: output, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
            #expect(getsResponse ? bytes ?? 0 > 0 : bytes == 0)
            // Other clients are still served.
            #expect(try await fixture.remote.status().sessions == 0)
        }
    }
}
