import CurlEngine
import Locking

/// The credentials that each origin has accepted. After a 403, the client uses them to distinguish a forbidden file from wrong credentials.
///
/// The credentials are the secrets that an endpoint references. Headers from the app's hook are not stored, because the hook may sign
/// each request differently. After a 401 or 403, the client requests new headers from the hook anyway.
///
/// Stores only hashes of the secrets. The seed of the hashes is random and differs in each process.
final class AcceptedCredentials: Sendable {
    private struct Key: Hashable {
        var endpointAddress: String
        var origin: Origin
        var credentials: Int
    }

    private let accepted = Locked<Set<Key>>([])

    func insert(_ credentials: [HTTPHeaders.Field], of endpointAddress: String, at origin: Origin) {
        let key = Key(endpointAddress: endpointAddress, origin: origin, credentials: credentials.hashValue)
        accepted.withLock { _ = $0.insert(key) }
    }

    func contains(_ credentials: [HTTPHeaders.Field], of endpointAddress: String, at origin: Origin) -> Bool {
        let key = Key(endpointAddress: endpointAddress, origin: origin, credentials: credentials.hashValue)
        return accepted.withLock { $0.contains(key) }
    }
}
