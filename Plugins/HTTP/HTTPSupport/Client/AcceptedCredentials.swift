import CurlEngine
import Locking

/// The credentials that each origin has accepted. After a 403, this record distinguishes a forbidden file from wrong credentials.
///
/// An account's credentials are the secrets that its endpoint references. Headers from the app's hook are not recorded, because the hook
/// may sign each request differently. After a 401 or 403, the client requests new headers from the hook anyway.
///
/// Stores only hashes of the secrets, with a random seed for each process. The endpoint's address identifies the account.
final class AcceptedCredentials: Sendable {
    private struct Entry: Hashable {
        var account: String
        var origin: Origin
        var credentials: Int
    }

    private let accepted = Locked<Set<Entry>>([])

    func insert(_ credentials: [HTTPHeaders.Field], of account: String, at origin: Origin) {
        let accepted = Entry(account: account, origin: origin, credentials: credentials.hashValue)
        self.accepted.withLock { _ = $0.insert(accepted) }
    }

    func contains(_ credentials: [HTTPHeaders.Field], of account: String, at origin: Origin) -> Bool {
        let entry = Entry(account: account, origin: origin, credentials: credentials.hashValue)
        return accepted.withLock { $0.contains(entry) }
    }
}
