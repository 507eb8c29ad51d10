import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportSFTP
import TransportTUS

/// The code of the article "Credentials", in the same order. ``ArticleTests`` verifies that both copies match.
// swift-format-ignore
private func credentials(_ vault: Vault, _ folder: FilePath) async throws {
    // ARTICLE
    let byToken = Endpoint.tus("https://upload.example.com/files/", credentials: .bearer(.file("/etc/studio/token")))
    let byPassword = Endpoint.tus("https://anna@upload.example.com/files/", credentials: .password(.environment("STUDIO_PASSWORD")))
    let byHeader = Endpoint.tus("https://upload.example.com/files/", credentials: .header("X-Api-Key", .app("api-key")))
    // END
    try await inMemory(vault, folder, [byToken, byPassword, byHeader])
}

// swift-format-ignore
private func inMemory(_ vault: Vault, _ folder: FilePath, _ endpoints: [Endpoint]) async throws {
    // ARTICLE
    let credentials = ReferencedCredentials { name in
        guard let value = await vault.value(of: name) else { throw NoSecret(name: name) }
        return Secret(value)
    }
    let queue = try await TransferQueue(storage: .folder(folder), transports: [TUSTransport()], credentials: credentials)
    // END
    try await queue.save(Account("studio", endpoints: endpoints))
}

// swift-format-ignore
private func fromServer(_ tokens: Vault) -> ReferencedCredentials {
    // ARTICLE
    let credentials = ReferencedCredentials { name in
        do {
            return Secret(try await tokens.token(named: name))
        } catch is TokenServerUnavailable {
            throw TransferError(.transient, .serverUnavailable, "The token server is unavailable.")
        }
    }
    // END
    return credentials
}

// swift-format-ignore
private func typed(_ password: String, _ queue: TransferQueue) async throws {
    // ARTICLE
    let endpoint = Endpoint.sftp("sftp://anna@files.example.com/in/", credentials: .password(.value(Secret(password))))
    try await queue.save(Account("studio", endpoints: [endpoint]))
    // END
}

// swift-format-ignore
private func keyring() async throws -> ReferencedCredentials {
    // ARTICLE
    let credentials = ReferencedCredentials { name in
        Secret(try await output(of: "/usr/bin/secret-tool", ["lookup", "service", "com.example.uploader", "account", name]))
    }
    // END
    return credentials
}

// ARTICLE
/// Returns the standard output of a program, without line breaks at its end. Runs the program on a thread that may block.
func output(of program: String, _ arguments: [String]) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue.global().async {
            let (process, pipe) = (Process(), Pipe())
            process.executableURL = URL(fileURLWithPath: program)
            process.arguments = arguments
            process.standardOutput = pipe
            continuation.resume(
                with: Result {
                    try process.run()
                    let output = pipe.fileHandleForReading.readDataToEndOfFile()
                    process.waitUntilExit()
                    guard process.terminationStatus == 0 else { throw ProgramFailed(status: process.terminationStatus) }
                    return String(decoding: output, as: UTF8.self).trimmingCharacters(in: .newlines)
                })
        }
    }
}

struct ProgramFailed: Error {
    let status: Int32
}
// END

// swift-format-ignore
private enum Custom {
    // ARTICLE
    struct KeyringCredentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret {
            guard case .app(let name) = reference.source else { return try await ReferencedCredentials().secret(for: reference) }
            do {
                return Secret(try await output(of: "/usr/bin/secret-tool", ["lookup", "service", "com.example.uploader", "account", name]))
            } catch {
                throw TransferError(.credentials, .credentialsUnavailable, "The keyring has no secret \"\(name)\".", cause: "\(error)")
            }
        }
    }
    // END
}

/// The app's secrets in memory.
private actor Vault {
    private var values: [String: String] = [:]

    func value(of name: String) -> String? { values[name] }

    func token(named name: String) throws -> String {
        guard let value = values[name] else { throw TokenServerUnavailable() }
        return value
    }
}

private struct TokenServerUnavailable: Error {}

private struct NoSecret: Error {
    let name: String
}

@Suite struct KeyringProgramTests {
    @Test func readsOutputWithoutLineBreak() async throws {
        #expect(try await output(of: "/bin/echo", ["a secret"]) == "a secret")
        await #expect(throws: ProgramFailed.self) { try await output(of: "/bin/sh", ["-c", "exit 1"]) }
        await #expect(throws: (any Error).self) { try await output(of: "/missing", []) }
    }

    /// Uses a separate keyring on a separate session bus.
    @Test func readsSecretFromKeyring() async throws {
        let home = FileManager.default.temporaryDirectory.appending(path: "transferkit-keyring-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        defer { try? FileManager.default.removeItem(at: home) }
        let commands = """
            printf password | gnome-keyring-daemon --unlock --components=secrets >&2
            printf 'a secret' | secret-tool store --label "Studio uploads" service com.example.uploader account api-key
            exec /usr/bin/secret-tool lookup service com.example.uploader account "$1"
            """
        // Foundation starts programs with blocked signals, but dbus-run-session needs a signal to end the session.
        let unblocking = "import os, signal, sys; signal.pthread_sigmask(signal.SIG_SETMASK, []); os.execvp(sys.argv[1], sys.argv[1:])"
        let keyring = { (name: String) in
            let variables = ["HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"].map { "\($0)=\(home.path)" }
            let words = ["python3", "-c", unblocking, "dbus-run-session", "--", "sh", "-c", commands, "sh", name]
            return try await output(of: "/usr/bin/env", variables + words)
        }
        #expect(try await keyring("api-key") == "a secret")
        await #expect(throws: ProgramFailed.self) { try await keyring("another") }
    }
}
