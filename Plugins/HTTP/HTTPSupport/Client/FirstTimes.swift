import Locking

/// Tells the first time that something is met from later ones, so that it is logged once.
package final class FirstTimes: Sendable {
    private let seen = Locked<Set<String>>([])

    package init() {}

    /// Whether this is the first call with a key.
    package func isFirst(_ key: String) -> Bool { seen.withLock { $0.insert(key).inserted } }
}
