package import CurlEngine
import Locking
import TransferCore

/// Remembers which credentials an origin accepted, so that a later 403 is told from credentials that were never right.
///
/// An account's credentials are the secrets that its endpoint names. What an app's hook adds is not among them: it may sign each request anew, and
/// it renews what was rejected before an answer counts, so that a refusal of what it then makes does not tell one from the other. A server that
/// means the credentials says so with 401.
///
/// Holds hashes with a seed of this process, never a secret, and one for each of an account's credentials that was accepted somewhere. Accounts are
/// told apart by their endpoints' addresses.
package final class Acceptance: Sendable {
    private struct Case: Hashable {
        var account: String
        var origin: String
        var credentials: Int
    }

    private let accepted = Locked<Set<Case>>([])

    package init() {}

    package func note(_ credentials: [HTTPHeaders.Field], of account: String, at origin: String) {
        let accepted = Case(account: account, origin: origin, credentials: credentials.hashValue)
        self.accepted.withLock { _ = $0.insert(accepted) }
    }

    package func wereAccepted(_ credentials: [HTTPHeaders.Field], of account: String, at origin: String) -> Bool {
        let asked = Case(account: account, origin: origin, credentials: credentials.hashValue)
        return accepted.withLock { $0.contains(asked) }
    }
}
