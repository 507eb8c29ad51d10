/// A hash table that finds elements of an array by their identity. Needs 5⅓ to 8 bytes for each element; removals free no memory.
///
/// Open addressing with linear probing. Each place of the table holds an element's slot (its index in the array), not its identity. Calls
/// therefore take the array and a closure that returns an element's identity. A removal shifts later entries back instead of leaving a
/// tombstone, so searches stay short after any number of removals.
package struct SlotIndex<Element, Identity: SlotIdentity>: Sendable {
    private static var vacant: UInt32 { .max }

    /// Each place holds a slot number in the bits of `slotMask`, and bits of the hash in the higher bits. A search compares these hash bits
    /// first. Searches therefore rarely access an element with another identity, which would be a cache miss.
    private var places: ContiguousArray<UInt32> = []
    private var slotMask: UInt32 = 0

    package init() {}

    /// The slot of the element with an identity, or nil.
    package func slot(of wanted: Identity, in elements: ContiguousArray<Element>, by identity: (Element) -> Identity) -> Int? {
        guard !places.isEmpty else { return nil }
        return search(for: wanted, hash(of: wanted), in: elements, by: identity).slot
    }

    /// Adds the array's last element, whose identity must be new.
    package mutating func insertLast(of elements: ContiguousArray<Element>, by identity: (Element) -> Identity) {
        let slot = elements.count - 1
        if !hasRoom(for: elements.count) {
            rebuild(places: max(8, places.count + places.count / 2), elements.dropLast(), by: identity)
        }
        let inserted = identity(elements[slot])
        let hash = hash(of: inserted)
        let found = search(for: inserted, hash, in: elements, by: identity)
        precondition(found.slot == nil, "The identity already exists.")
        places[found.place] = entry(slot, hash)
    }

    /// Removes the entry of a slot. The slot's element must still be in the array.
    package mutating func remove(slot: Int, of elements: ContiguousArray<Element>, by identity: (Element) -> Identity) {
        var gap = place(of: slot, hash(of: identity(elements[slot])))
        var place = following(gap)
        while places[place] != Self.vacant {
            let home = home(hash(of: identity(elements[Int(places[place] & slotMask)])))
            // A search stops at a vacant place. If the search for this entry would pass the gap, move the entry into the gap.
            if distance(from: home, to: place) >= distance(from: gap, to: place) {
                places[gap] = places[place]
                gap = place
            }
            place = following(place)
        }
        places[gap] = Self.vacant
    }

    /// Records that an element moves to another slot. The element must still be at its former slot in the array.
    package mutating func move(slot: Int, to other: Int, of elements: ContiguousArray<Element>, by identity: (Element) -> Identity) {
        let hash = hash(of: identity(elements[slot]))
        places[place(of: slot, hash)] = entry(other, hash)
    }

    private func hasRoom(for count: Int) -> Bool { 4 * count <= 3 * places.count }

    /// Replaces the index with an index of all elements of an array. This is much faster than adding one element at a time.
    ///
    /// - Returns: The slots that were left out because an earlier element has the same identity.
    package mutating func build(of elements: ContiguousArray<Element>, by identity: (Element) -> Identity) -> [Int] {
        places = []
        reservePlaces(elements.count + elements.count / 2 + 1)
        var duplicates: [Int] = []
        for slot in elements.indices {
            let added = identity(elements[slot])
            let hash = hash(of: added)
            let found = search(for: added, hash, in: elements, by: identity)
            if found.slot == nil { places[found.place] = entry(slot, hash) } else { duplicates.append(slot) }
        }
        return duplicates
    }

    private mutating func rebuild(places count: Int, _ elements: some Sequence<Element>, by identity: (Element) -> Identity) {
        reservePlaces(count)
        for (slot, element) in elements.enumerated() {
            let hash = hash(of: identity(element))
            var place = home(hash)
            while places[place] != Self.vacant { place = following(place) }
            places[place] = entry(slot, hash)
        }
    }

    private mutating func reservePlaces(_ count: Int) {
        precondition(count <= Int(UInt32.max / 2), "Too many elements for slot numbers of 32 bits.")
        places = []  // Frees the old array first, so that the old and the new array need not fit into memory together.
        places = ContiguousArray(repeating: Self.vacant, count: count)
        slotMask = .max >> UInt32(UInt32(count).leadingZeroBitCount)
    }

    /// The place and slot of an identity; for a missing identity, the vacant place for it and a nil slot.
    private func search(
        for wanted: Identity, _ hash: SlotHash, in elements: ContiguousArray<Element>, by identity: (Element) -> Identity
    ) -> (place: Int, slot: Int?) {
        let tag = entry(0, hash)
        var place = home(hash)
        while places[place] != Self.vacant {
            let slot = Int(places[place] & slotMask)
            if places[place] & ~slotMask == tag, identity(elements[slot]) == wanted { return (place, slot) }
            place = following(place)
        }
        return (place, nil)
    }

    private func place(of slot: Int, _ hash: SlotHash) -> Int {
        let wanted = entry(slot, hash)
        var place = home(hash)
        while places[place] != wanted {
            precondition(places[place] != Self.vacant, "The element is not in the index.")
            place = following(place)
        }
        return place
    }

    /// The content of the place for a slot. Never equals the vacant value, because there are more places than slots.
    private func entry(_ slot: Int, _ hash: SlotHash) -> UInt32 {
        (UInt32(truncatingIfNeeded: hash.bits) &+ UInt32(hash.offset) << 27) & ~slotMask | UInt32(slot)
    }

    private func hash(of identity: Identity) -> SlotHash {
        identity.slotHash
    }

    /// The first place of a search. A multiplication brings the hash into range (Lemire, 2019), so the number of places need not be a power
    /// of two.
    private func home(_ hash: SlotHash) -> Int {
        let place = Int(UInt64(places.count).multipliedFullWidth(by: hash.bits).high) + hash.offset
        return place < places.count ? place : place % places.count
    }

    private func following(_ place: Int) -> Int {
        place + 1 == places.count ? 0 : place + 1
    }

    private func distance(from start: Int, to end: Int) -> Int {
        end >= start ? end - start : end - start + places.count
    }
}
