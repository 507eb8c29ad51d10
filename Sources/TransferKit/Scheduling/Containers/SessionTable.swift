package protocol SessionTableElement: Sendable, Equatable {
    var key: SessionKey { get }
    var id: SessionID { get }
}

/// A table of sessions with lookup by key and by ID. The indexes add about 11 to 16 bytes to each element; removals free no memory.
///
/// The elements are contiguous in one array. If an element is removed, the last element moves to its slot (its index in the array), so the
/// array has no gaps.
package struct SessionTable<Element: SessionTableElement>: Sendable {
    /// All elements, in no particular order.
    package private(set) var elements: ContiguousArray<Element> = []
    private var byKey = SlotIndex<Element, SessionKey>()
    private var byID = SlotIndex<Element, SessionID>()

    package init() {}

    package var count: Int { elements.count }

    package subscript(key: SessionKey) -> Element? {
        slot(of: key).map { elements[$0] }
    }

    package func key(of id: SessionID) -> SessionKey? {
        byID.slot(of: id, in: elements) { $0.id }.map { elements[$0].key }
    }

    package func contains(_ id: SessionID) -> Bool {
        key(of: id) != nil
    }

    /// Reserves memory for the given number of sessions, so that loading does not reallocate the array.
    package mutating func reserveLoading(_ count: Int) {
        elements.reserveCapacity(count)
    }

    /// Adds a session. Lookups find the session only after ``finishLoading()``.
    package mutating func load(_ element: Element) {
        elements.append(element)
    }

    /// Indexes all loaded sessions. Removes sessions with the same key or ID as an earlier session.
    ///
    /// - Returns: The keys of the removed sessions.
    package mutating func finishLoading() -> [SessionKey] {
        let duplicates = Set(byKey.build(of: elements) { $0.key } + byID.build(of: elements) { $0.id })
        guard !duplicates.isEmpty else { return [] }
        let keys = duplicates.map { elements[$0].key }
        elements = ContiguousArray(elements.indices.lazy.filter { !duplicates.contains($0) }.map { [elements] in elements[$0] })
        return keys + finishLoading()
    }

    /// Replaces the session in a slot of ``elements`` with a session of the same key and ID.
    package mutating func replace(slot: Int, with element: Element) {
        precondition(elements[slot].key == element.key && elements[slot].id == element.id, "A session must keep its key and its ID.")
        elements[slot] = element
    }

    /// Adds a session; its key and its ID must be new.
    package mutating func insert(_ element: Element) {
        elements.append(element)
        byKey.insertLast(of: elements) { $0.key }
        byID.insertLast(of: elements) { $0.id }
    }

    /// Replaces the session with the same key, which must exist and have the same ID.
    package mutating func update(_ element: Element) {
        guard let slot = slot(of: element.key) else { preconditionFailure("There is no session with that key.") }
        replace(slot: slot, with: element)
    }

    @discardableResult
    package mutating func remove(_ key: SessionKey) -> Element? {
        guard let slot = slot(of: key) else { return nil }
        byKey.remove(slot: slot, of: elements) { $0.key }
        byID.remove(slot: slot, of: elements) { $0.id }
        let last = elements.count - 1
        if slot != last {
            byKey.move(slot: last, to: slot, of: elements) { $0.key }
            byID.move(slot: last, to: slot, of: elements) { $0.id }
            elements.swapAt(slot, last)
        }
        return elements.removeLast()
    }

    /// The slot of a session in ``elements``, valid until the next change; nil for an unknown key.
    package func slot(of key: SessionKey) -> Int? {
        byKey.slot(of: key, in: elements) { $0.key }
    }
}

extension SessionTable: Sequence {
    package func makeIterator() -> ContiguousArray<Element>.Iterator {
        elements.makeIterator()
    }

    package var underestimatedCount: Int { elements.count }
}

extension SessionTable: Equatable {
    /// Whether two tables contain equal sessions. The internal order does not matter.
    package static func == (left: Self, right: Self) -> Bool {
        left.count == right.count && left.allSatisfy { right[$0.key] == $0 }
    }
}
