import Foundation
import SystemPackage
public import TransferCore

/// Reads secrets from where their references say: the environment, or files and pipes that only their owner can read, of 64 KiB at most.
///
/// The default of a ``TransferQueue``. Nothing is cached, so that a renewed token is used by the next attempt.
public struct ReferencedCredentials: CredentialProvider {
    /// Makes a provider.
    public init() {}

    /// Reads a secret, on a thread that may wait for the disk.
    ///
    /// - Throws: A ``TransferError`` of the class `credentials` that names the variable or the file.
    public func secret(for reference: CredentialReference) async throws -> Secret {
        switch reference.source {
        case .environment(let name):
            guard let value = ProcessInfo.processInfo.environment[name], !value.isEmpty else {
                throw unavailable("The environment variable \(name), which should hold a credential, is not set.")
            }
            return Secret(value)
        case .file(let path):
            return try await BlockingIO.run(.credentials) { try Self.read(path) }
        }
    }

    /// No server takes a header or a password that is longer.
    private static let limit = 1 << 16

    private static func read(_ path: String) throws -> Secret {
        let bytes = try PrivateFile.read(FilePath(path), as: "credential file", limit: limit)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw unavailable("The credential file \(path) can't be read as text.")
        }
        let value = text.trimmingCharacters(in: .newlines)
        guard !value.isEmpty else { throw unavailable("The credential file \(path) is empty.") }
        return Secret(value)
    }

    private static func unavailable(_ message: String) -> TransferError {
        TransferError(.credentials, .credentialsUnavailable, message)
    }

    private func unavailable(_ message: String) -> TransferError {
        Self.unavailable(message)
    }
}
