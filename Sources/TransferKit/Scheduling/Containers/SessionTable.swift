/// What a ``SessionTable`` can hold.
package protocol SessionTableElement: Sendable, Equatable {
    var key: SessionKey { get }
    var id: SessionID { get }
}

/// Sessions by key and by ID, for the size of an element and some 11 to 16 bytes each.
///
/// The elements lie side by side in one array. A removed one is replaced with the last, so there are no free slots to keep account of.
package struct SessionTable<Element: SessionTableElement>: Sendable {
    /// In no particular order.
    package private(set) var elements: ContiguousArray<Element> = []
    private var byKey = SlotIndex<Element, SessionKey>()
    private var byID = SlotIndex<Element, SessionID>()

    package init() {}

    package var count: Int { elements.count }

    /// The session of a key; nil if there is none.
    package subscript(key: SessionKey) -> Element? {
        slot(of: key).map { elements[$0] }
    }

    /// The key of a session; nil if there is none of that ID.
    package func key(of id: SessionID) -> SessionKey? {
        byID.slot(of: id, in: elements) { $0.id }.map { elements[$0].key }
    }

    package func contains(_ id: SessionID) -> Bool {
        key(of: id) != nil
    }

    /// Makes room for that many sessions that are to be loaded, so that it copies nothing.
    package mutating func reserveLoading(_ count: Int) {
        elements.reserveCapacity(count)
    }

    /// Adds a session that can't be found before ``finishLoading()``.
    package mutating func load(_ element: Element) {
        elements.append(element)
    }

    /// Lets all sessions be found. Those that have the key or the ID of an earlier one are taken out.
    ///
    /// - Returns: The keys of those taken out.
    package mutating func finishLoading() -> [SessionKey] {
        let taken = Set(byKey.build(of: elements) { $0.key } + byID.build(of: elements) { $0.id })
        guard !taken.isEmpty else { return [] }
        let keys = taken.map { elements[$0].key }
        elements = ContiguousArray(elements.indices.lazy.filter { !taken.contains($0) }.map { [elements] in elements[$0] })
        return keys + finishLoading()
    }

    /// Replaces the session in a slot of ``elements`` with one of the same key and ID.
    package mutating func replace(slot: Int, with element: Element) {
        precondition(elements[slot].key == element.key && elements[slot].id == element.id, "A session keeps its key and its ID.")
        elements[slot] = element
    }

    /// Adds a session; its key and its ID must be new.
    package mutating func insert(_ element: Element) {
        elements.append(element)
        byKey.insertLast(of: elements) { $0.key }
        byID.insertLast(of: elements) { $0.id }
    }

    /// Replaces the session of the same key, which must be there and have the same ID.
    package mutating func update(_ element: Element) {
        guard let slot = slot(of: element.key) else { preconditionFailure("There is no session of that key.") }
        replace(slot: slot, with: element)
    }

    /// Takes a session out; nil if there is none of that key.
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

    /// Where a session is in ``elements``, until the next change; nil if there is none of that key.
    package func slot(of key: SessionKey) -> Int? {
        byKey.slot(of: key, in: elements) { $0.key }
    }
}

extension SessionTable: Sequence {
    /// All sessions, in no particular order.
    package func makeIterator() -> ContiguousArray<Element>.Iterator {
        elements.makeIterator()
    }

    package var underestimatedCount: Int { elements.count }
}

extension SessionTable: Equatable {
    /// Whether both hold equal sessions, however they came to.
    package static func == (left: Self, right: Self) -> Bool {
        left.count == right.count && left.allSatisfy { right[$0.key] == $0 }
    }
}
