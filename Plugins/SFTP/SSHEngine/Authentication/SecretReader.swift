import Locking
import TransferCore

/// Reads secrets from the credential provider in a task, while the connection's thread waits on its mailbox.
struct SecretReader: Sendable {
    let provider: any CredentialProvider
    let mailbox: ConnectionMailbox

    /// Reads a secret. Blocks until the provider returns it.
    ///
    /// - Returns: The secret, or the provider's error.
    /// - Throws: The deadline's error, or `CancellationError` if the connection must stop.
    func read(_ reference: CredentialReference, by deadline: Deadline) throws -> Result<Secret, any Error> {
        let outcome = Locked<Result<Secret, any Error>?>(nil)
        let task = Task { [provider, mailbox] in
            let result: Result<Secret, any Error>
            do { result = .success(try await provider.secret(for: reference)) } catch { result = .failure(error) }
            outcome.withLock { $0 = result }
            mailbox.wake()
        }
        defer { task.cancel() }
        while true {
            if let result = outcome.withLock({ $0 }) { return result }
            try mailbox.wait(for: 0, on: nil, by: deadline)
        }
    }
}
