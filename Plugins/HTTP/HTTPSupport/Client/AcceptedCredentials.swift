import CurlEngine
import Locking

/// Remembers which credentials an origin has accepted, to distinguish a forbidden file from wrong credentials after a 403.
///
/// An account's credentials are the secrets that its endpoint names. Headers that an app's hook adds are not among them: the hook may sign each
/// request differently, and renews rejected headers before a response counts, so a 403 says nothing about them. A server that rejects them answers
/// with 401.
///
/// Holds hashes with a seed of this process, and never a secret. The endpoint's address identifies the account.
final class AcceptedCredentials: Sendable {
    private struct Case: Hashable {
        var account: String
        var origin: Origin
        var credentials: Int
    }

    private let accepted = Locked<Set<Case>>([])

    func insert(_ credentials: [HTTPHeaders.Field], of account: String, at origin: Origin) {
        let accepted = Case(account: account, origin: origin, credentials: credentials.hashValue)
        self.accepted.withLock { _ = $0.insert(accepted) }
    }

    func contains(_ credentials: [HTTPHeaders.Field], of account: String, at origin: Origin) -> Bool {
        let asked = Case(account: account, origin: origin, credentials: credentials.hashValue)
        return accepted.withLock { $0.contains(asked) }
    }
}
