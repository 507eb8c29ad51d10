/// The order of the sessions in the queue.
package struct SessionOrder: Sendable, Equatable {
    private var keys: [SessionKey] = []

    /// How many sessions there are.
    package var count: Int { keys.count }

    /// The sessions in order.
    package var elements: [SessionKey] { keys }

    /// The session at an index, which must be in range.
    package subscript(index: Int) -> SessionKey { keys[index] }

    /// Where a session is; nil if it is not in the queue.
    package func index(of key: SessionKey) -> Int? {
        keys.firstIndex(of: key)
    }

    package mutating func insert(_ key: SessionKey, at index: Int) {
        keys.insert(key, at: index)
    }

    package mutating func append(_ key: SessionKey) {
        keys.append(key)
    }

    @discardableResult
    package mutating func remove(at index: Int) -> SessionKey {
        keys.remove(at: index)
    }
}
