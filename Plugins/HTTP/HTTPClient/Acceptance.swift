package import CurlEngine
import Locking
import TransferCore

/// Remembers which credentials an origin accepted, so that a later 403 is told from credentials that were never right.
///
/// An account's credentials are the secrets that its endpoint names. What an app's hook adds is not among them: it may sign each request anew, and
/// it renews what was rejected before an answer counts, so that a refusal of what it then makes does not tell one from the other. A server that
/// means the credentials says so with 401.
///
/// Holds hashes with a seed of this process, never a secret, and one for each account and origin.
package final class Acceptance: Sendable {
    private struct Place: Hashable {
        var account: String
        var origin: String
    }

    private let accepted = Locked<[Place: Int]>([:])

    package init() {}

    package func note(_ credentials: [HTTPHeaders.Field], of account: String, at origin: String) {
        let hash = credentials.hashValue
        accepted.withLock { $0[Place(account: account, origin: origin)] = hash }
    }

    package func wereAccepted(_ credentials: [HTTPHeaders.Field], of account: String, at origin: String) -> Bool {
        let hash = credentials.hashValue
        return accepted.withLock { $0[Place(account: account, origin: origin)] == hash }
    }
}
