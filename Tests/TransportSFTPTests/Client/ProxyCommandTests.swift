import Testing
import TransferCore
import TransportSFTP

@Suite(.timeLimit(.minutes(5))) struct ProxyCommandTests {
    private func failure(of command: String) async throws -> TransferError {
        let transport = SFTPTransport()
        let endpoint = Endpoint.sftp("sftp://me@host.invalid/in/", options: SFTPOptions(agent: .none, proxyCommand: command))
        let error = try await #require(throws: TransferError.self) {
            try await transport.check(endpoint, credentials: NoCredentials())
        }
        await transport.shutdown()
        return error
    }

    @Test(
        arguments: [
            ("false", "ended with status 1 before it reached host.invalid.", nil),
            ("sh -c 'echo first >&2; printf \"no way\\n\" >&2; exit 3'", "ended with status 3", ": no way"),
            ("sh -c 'printf \"\\033[1mhalf a line\" >&2; exit 4'", "ended with status 4", "half a line"),
            // U+009B, the one-character control sequence introducer (ECMA-48, 5.4), and U+202E, which overrides the text direction.
            ("sh -c 'printf \"a\\302\\233b\\342\\200\\256c\" >&2; exit 4'", "ended with status 4", ": a b c"),
            ("/no/such/program %h", "ended with status 127", "/no/such/program"), ("sh -c 'kill -KILL $$'", "ended with signal 9", nil),
        ] as [(String, String, String?)])
    func reportsHowCommandEnded(command: String, exitReason: String, words: String?) async throws {
        let error = try await failure(of: command)
        #expect(error.failureClass == .unreachable && error.message.contains("proxyCommand \(exitReason)"), "\(error)")
        if let words { #expect(error.message.contains(words), "\(error)") }
        #expect(!error.message.contains("first") && !error.message.contains("\u{1B}"))
    }

    @Test func truncatesOutputOfCommand() async throws {
        let error = try await failure(of: "sh -c 'head -c 300000 /dev/zero | tr \"\\0\" a >&2; exit 5'")
        #expect(error.message.contains("status 5") && error.message.utf8.count < 400, "\(error.message.utf8.count)")
    }
}
