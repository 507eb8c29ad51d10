package import CurlEngine
import Locking
import TransferCore

/// Remembers which credentials an origin accepted, so that a later 403 is told from credentials that were never right.
///
/// Holds hashes with a seed of this process, never a secret, and one an origin.
package final class Acceptance: Sendable {
    private let accepted = Locked<[String: Int]>([:])

    package init() {}

    package func note(_ credentials: [HTTPHeaders.Field], at origin: String) {
        let hash = credentials.hashValue
        accepted.withLock { $0[origin] = hash }
    }

    package func wereAccepted(_ credentials: [HTTPHeaders.Field], at origin: String) -> Bool {
        let hash = credentials.hashValue
        return accepted.withLock { $0[origin] == hash }
    }
}
