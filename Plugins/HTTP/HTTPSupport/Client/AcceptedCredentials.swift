import CurlEngine
import Locking

/// Remembers which credentials each origin has accepted. After a 403, this distinguishes a forbidden file from wrong credentials.
///
/// An account's credentials are the secrets that its endpoint references. Headers from the app's hook are not remembered: the hook may sign each
/// request differently, and after a 401 or 403 it is called for new headers first.
///
/// Stores hashes with a seed of this process, never secrets. The endpoint's address identifies the account.
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
