import Foundation
import TransferCore

extension PromiseCheck {
    func refusedConnectionIsUnreachable() async throws {
        let (source, _) = try makeSource(1000)
        try await expect(.unreachable, "When the connection was refused") {
            try await send(source, as: makePath(), at: fixture.unreachableEndpoint)
        }
    }

    func secretsDoNotLeak() async throws {
        let (source, _) = try makeSource(Self.largeSize)
        let path = try makePath()
        let recorder = AttemptRecorder()
        try await fixture.cut(afterBytes: 100_000)
        let cut = try await failure("When the connection broke") { try await send(source, as: path, recorder) }
        try requireNoSecret(in: cut)
        try requireNoSecret(in: recorder.checkpoints)
        let receipt = try await send(source, as: path, from: recorder.checkpoints.last, recorder)
        try requireNoSecret(in: recorder.checkpoints)
        try requireNoSecret(in: String(reflecting: receipt), "The receipt")
        let unreachable = try await failure("When the connection was refused") {
            try await send(source, as: makePath(), at: fixture.unreachableEndpoint)
        }
        try requireNoSecret(in: unreachable)
        try await requireRejectedSecretDoesNotLeak(source)
    }

    /// Checks that the error for a rejected secret does not contain the secret. Servers that accept every secret pass.
    private func requireRejectedSecretDoesNotLeak(_ source: UploadSource) async throws {
        let wrong = "wrong-\(UUID().uuidString)"
        let attempt = FileAttempt(
            transferID: "conformance-wrong-secret", endpoint: fixture.endpoint, source: source, remotePath: try makePath(),
            credentials: WrongCredentials(value: wrong), logger: Self.logger)
        do {
            let transport = fixture.transport
            let running = RunningAttempt(task: Task { try await transport.perform(attempt, reporting: AttemptRecorder().reporter) })
            _ = try await running.value(within: deadline, of: self)
        } catch let error as TransferError {
            try requireNoSecret(in: error, [wrong])
        }
    }

    private func requireNoSecret(in checkpoints: [Checkpoint]) throws {
        for checkpoint in checkpoints { try requireNoSecret(in: String(decoding: checkpoint.data, as: UTF8.self), "A checkpoint") }
    }

    private func requireNoSecret(in error: TransferError, _ secrets: [String]? = nil) throws {
        try requireNoSecret(in: String(reflecting: error), "The error", secrets)
        try requireNoSecret(in: error.description, "The error's description", secrets)
    }

    /// Checks that a text contains no secret, neither as text nor in base64.
    ///
    /// - Parameter secrets: The secrets; nil for the secrets of the fixture.
    private func requireNoSecret(in text: String, _ holder: String, _ secrets: [String]? = nil) throws {
        for secret in secrets ?? fixture.secrets where !secret.isEmpty {
            // In HTTP basic authentication, a user name precedes the secret. The length of the user name determines the base64 text of the
            // secret; three shifts cover all cases.
            let encoded = (0..<3).map { shift in
                let padded = Data(repeating: 0x3A, count: shift) + Data(secret.utf8)
                return String(padded.base64EncodedString().dropFirst(4).dropLast(4))
            }
            // The violation itself must not contain the secret.
            try require(!text.contains(secret), "\(holder) contains a secret.")
            try require(!encoded.contains { $0.count >= 8 && text.contains($0) }, "\(holder) contains a secret in base64.")
        }
    }
}

private struct WrongCredentials: CredentialProvider {
    let value: String

    func secret(for reference: CredentialReference) async throws -> Secret { Secret(value) }
}
