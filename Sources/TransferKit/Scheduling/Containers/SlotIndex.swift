/// A hash table that finds elements of an array by their identity. Needs 5⅓ to 8 bytes for each element; removals free no memory.
///
/// Open addressing with linear probing. Each bucket of the table holds an element's slot (its index in the array), not its identity. Calls
/// therefore take the array and a closure that returns an element's identity. A removal shifts later entries back instead of leaving a
/// tombstone, so searches stay short after any number of removals.
package struct SlotIndex<Element, Identity: SlotIdentity>: Sendable {
    private static var vacant: UInt32 { .max }

    /// Each bucket holds a slot number in the bits of `slotMask`, and bits of the hash in the higher bits. A search compares these hash bits
    /// first. Searches therefore rarely access an element with another identity, which would be a cache miss.
    private var buckets: ContiguousArray<UInt32> = []
    private var slotMask: UInt32 = 0

    package init() {}

    /// The slot of the element with an identity, or nil.
    package func slot(of wanted: Identity, in elements: ContiguousArray<Element>, by identity: (Element) -> Identity) -> Int? {
        guard !buckets.isEmpty else { return nil }
        return search(for: wanted, hash(of: wanted), in: elements, by: identity).slot
    }

    /// Adds the array's last element, whose identity must be new.
    package mutating func insertLast(of elements: ContiguousArray<Element>, by identity: (Element) -> Identity) {
        let slot = elements.count - 1
        if !hasRoom(for: elements.count) {
            rebuild(buckets: max(8, buckets.count + buckets.count / 2), elements.dropLast(), by: identity)
        }
        let inserted = identity(elements[slot])
        let hash = hash(of: inserted)
        let found = search(for: inserted, hash, in: elements, by: identity)
        precondition(found.slot == nil, "The identity already exists.")
        buckets[found.bucket] = entry(slot, hash)
    }

    /// Removes the entry of a slot. The slot's element must still be in the array.
    package mutating func remove(slot: Int, of elements: ContiguousArray<Element>, by identity: (Element) -> Identity) {
        var gap = bucket(of: slot, hash(of: identity(elements[slot])))
        var bucket = following(gap)
        while buckets[bucket] != Self.vacant {
            let home = home(hash(of: identity(elements[Int(buckets[bucket] & slotMask)])))
            // A search stops at a vacant bucket. If the search for this entry would pass the gap, move the entry into the gap.
            if distance(from: home, to: bucket) >= distance(from: gap, to: bucket) {
                buckets[gap] = buckets[bucket]
                gap = bucket
            }
            bucket = following(bucket)
        }
        buckets[gap] = Self.vacant
    }

    /// Records that an element moves to another slot. The element must still be at its former slot in the array.
    package mutating func move(slot: Int, to other: Int, of elements: ContiguousArray<Element>, by identity: (Element) -> Identity) {
        let hash = hash(of: identity(elements[slot]))
        buckets[bucket(of: slot, hash)] = entry(other, hash)
    }

    private func hasRoom(for count: Int) -> Bool { 4 * count <= 3 * buckets.count }

    /// Replaces the index with an index of all elements of an array. This is much faster than adding one element at a time.
    ///
    /// - Returns: The slots that the index omits because an earlier element has the same identity.
    package mutating func build(of elements: ContiguousArray<Element>, by identity: (Element) -> Identity) -> [Int] {
        buckets = []
        reserveBuckets(elements.count + elements.count / 2 + 1)
        var duplicates: [Int] = []
        for slot in elements.indices {
            let added = identity(elements[slot])
            let hash = hash(of: added)
            let found = search(for: added, hash, in: elements, by: identity)
            if found.slot == nil { buckets[found.bucket] = entry(slot, hash) } else { duplicates.append(slot) }
        }
        return duplicates
    }

    private mutating func rebuild(buckets count: Int, _ elements: some Sequence<Element>, by identity: (Element) -> Identity) {
        reserveBuckets(count)
        for (slot, element) in elements.enumerated() {
            let hash = hash(of: identity(element))
            var bucket = home(hash)
            while buckets[bucket] != Self.vacant { bucket = following(bucket) }
            buckets[bucket] = entry(slot, hash)
        }
    }

    private mutating func reserveBuckets(_ count: Int) {
        precondition(count <= Int(UInt32.max / 2), "Too many elements for slot numbers of 32 bits.")
        buckets = []  // Frees the old array first, so that the old and the new array need not fit into memory together.
        buckets = ContiguousArray(repeating: Self.vacant, count: count)
        slotMask = .max >> UInt32(UInt32(count).leadingZeroBitCount)
    }

    /// The bucket and slot of an identity; for a missing identity, the vacant bucket in which the identity belongs, and a nil slot.
    private func search(
        for wanted: Identity, _ hash: SlotHash, in elements: ContiguousArray<Element>, by identity: (Element) -> Identity
    ) -> (bucket: Int, slot: Int?) {
        let tag = entry(0, hash)
        var bucket = home(hash)
        while buckets[bucket] != Self.vacant {
            let slot = Int(buckets[bucket] & slotMask)
            if buckets[bucket] & ~slotMask == tag, identity(elements[slot]) == wanted { return (bucket, slot) }
            bucket = following(bucket)
        }
        return (bucket, nil)
    }

    private func bucket(of slot: Int, _ hash: SlotHash) -> Int {
        let wanted = entry(slot, hash)
        var bucket = home(hash)
        while buckets[bucket] != wanted {
            precondition(buckets[bucket] != Self.vacant, "The element is not in the index.")
            bucket = following(bucket)
        }
        return bucket
    }

    /// The content of the bucket for a slot. Never equals the vacant value, because there are more buckets than slots.
    private func entry(_ slot: Int, _ hash: SlotHash) -> UInt32 {
        (UInt32(truncatingIfNeeded: hash.bits) &+ UInt32(hash.offset) << 27) & ~slotMask | UInt32(slot)
    }

    private func hash(of identity: Identity) -> SlotHash {
        identity.slotHash
    }

    /// The first bucket of a search. A multiplication brings the hash into range (Lemire, 2019), so the number of buckets need not be a power
    /// of two.
    private func home(_ hash: SlotHash) -> Int {
        let bucket = Int(UInt64(buckets.count).multipliedFullWidth(by: hash.bits).high) + hash.offset
        return bucket < buckets.count ? bucket : bucket % buckets.count
    }

    private func following(_ bucket: Int) -> Int {
        bucket + 1 == buckets.count ? 0 : bucket + 1
    }

    private func distance(from start: Int, to end: Int) -> Int {
        end >= start ? end - start : end - start + buckets.count
    }
}
