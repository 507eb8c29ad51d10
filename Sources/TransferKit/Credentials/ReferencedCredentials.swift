import Foundation
import SystemPackage
public import TransferCore

/// Reads secrets from environment variables, from files or pipes of at most 64 KiB that are not accessible to other users, from the memory
/// of this process, and from the app.
///
/// This is the default provider of a ``TransferQueue``. The provider caches no secrets: if a token is renewed, the next attempt uses the
/// new token.
///
/// ```swift
/// let credentials = ReferencedCredentials { name in
///     Secret(try await keyring.password(named: name))
/// }
/// ```
public struct ReferencedCredentials: CredentialProvider {
    private let app: (@Sendable (String) async throws -> Secret)?

    /// Creates a provider.
    ///
    /// - Parameter app: Returns the secret that a reference with the source ``/TransferCore/CredentialReference/Source/app(_:)`` names. Transports
    ///   call this function on any executor, at most once per request. If the function throws a ``/TransferCore/TransferError``, the queue handles
    ///   the error by its class. For example, it retries after an error of the class ``/TransferCore/FailureClass/transient``, which the function can
    ///   throw while a token server is unavailable. Any other error, except `CancellationError`, blocks the account until the user acts. Pass nil if
    ///   the app has no secrets.
    public init(app: (@Sendable (_ name: String) async throws -> Secret)? = nil) {
        self.app = app
    }

    /// Reads the secret that a reference names. Removes line breaks at the start and the end of a file's text. Reads files on a thread that
    /// may block.
    ///
    /// - Throws: A ``/TransferCore/TransferError`` of the class `credentials` that names the variable, the file or the secret; the
    ///   `TransferError` of the app's function; or `CancellationError`.
    public func secret(for reference: CredentialReference) async throws -> Secret {
        switch reference.source {
        case .environment(let name):
            guard let value = ProcessInfo.processInfo.environment[name], !value.isEmpty else {
                throw unavailable("The environment variable \(name) for a credential is not set, or is empty. Set it.")
            }
            return Secret(value)
        case .file(let path):
            return try await BlockingIO.run(.credentials) { try Self.read(path) }
        case .app(let name):
            guard let app else {
                throw unavailable("No app in this process supplies the secret \"\(name)\". Run the queue in the app that supplies it.")
            }
            do {
                return try await app(name)
            } catch let error as CancellationError {
                throw error
            } catch let error as TransferError {
                throw error
            } catch {
                throw unavailable("The app did not supply the secret \"\(name)\": \(error)")
            }
        case .memory(let memory):
            guard let secret = memory.secret else {
                throw unavailable(
                    "The \(reference.name ?? reference.kind.rawValue) was in the memory of a process that has ended. Save the account again."
                )
            }
            return secret
        }
    }

    /// The maximum size of a credential file in bytes.
    private static let limit = 1 << 16

    private static func read(_ path: String) throws -> Secret {
        let bytes = try PrivateFile.read(FilePath(path), as: "credential file", limit: limit)
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw unavailable("The credential file \(path) is not UTF-8 text. Write the secret as UTF-8.")
        }
        let value = text.trimmingCharacters(in: .newlines)
        guard !value.isEmpty else { throw unavailable("The credential file \(path) is empty. Write the secret to it.") }
        return Secret(value)
    }

    private static func unavailable(_ message: String) -> TransferError {
        TransferError(.credentials, .credentialsUnavailable, message)
    }

    private func unavailable(_ message: String) -> TransferError {
        Self.unavailable(message)
    }
}
