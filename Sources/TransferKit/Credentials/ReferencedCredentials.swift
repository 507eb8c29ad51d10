import Foundation
public import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Reads secrets from where their references say: the environment, or files that only their owner can read.
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
            return try await DiskThread.run { try Self.read(path) }
        }
    }

    private static func read(_ path: String) throws -> Secret {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            throw unavailable("The credential file \(path) can't be read: \(unsafe String(cString: strerror(errno))).")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw unavailable("The credential file \(path) is open to others; run: chmod 600 \(path)")
        }
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else {
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
