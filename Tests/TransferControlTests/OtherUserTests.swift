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

/// The modes of folder and socket keep other users out. Where they were changed, the listener still asks who it is (unix(7), SO_PEERCRED).
@Suite(.enabled(if: geteuid() == 0, "Only root can be another user as well")) struct OtherUserTests {
    /// Greets as its first argument's user, and prints how many bytes are answered.
    private static let program = """
        import os, socket, sys
        os.setgid(int(sys.argv[1]))
        os.setuid(int(sys.argv[1]))
        client = socket.socket(socket.AF_UNIX)
        client.connect(sys.argv[2])
        answer = b""
        try:
            client.sendall(bytes.fromhex(sys.argv[3]))
            client.shutdown(socket.SHUT_WR)
            while part := client.recv(65536):
                answer += part
        except OSError:
            pass
        print(len(answer))
        """

    @Test(arguments: [(65_534, false), (0, true)]) func anotherUserGetsNoAnswer(user: Int, isAnswered: Bool) async throws {
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
            #expect(isAnswered ? bytes ?? 0 > 0 : bytes == 0)
            // Others are still served.
            #expect(try await fixture.remote.status().sessions == 0)
        }
    }
}
