/// Where a ``SlotIndex`` begins to look for an identity.
package struct SlotHash: Sendable {
    /// Spread evenly over all values.
    package var bits: UInt64
    /// How many places further on, 0 to 31: neighbours that are asked for one after the other are then side by side in memory.
    package var offset = 0
}

/// What a ``SlotIndex`` finds an element by.
package protocol SlotIdentity: Hashable {
    var slotHash: SlotHash { get }
}

extension SlotIdentity {
    /// The standard library's hash, keyed anew in each process: whoever chooses identities can't choose collisions.
    package var slotHash: SlotHash { SlotHash(bits: UInt64(bitPattern: Int64(hashValue))) }
}

extension SessionID: SlotIdentity {}

extension SessionKey: SlotIdentity {
    /// Keys are numbers that the queue gives, one after the other: 32 of them share a hash (Fibonacci hashing; Knuth, volume 3, section 6.4).
    package var slotHash: SlotHash {
        SlotHash(bits: UInt64(bitPattern: self >> 5) &* 0x9E37_79B9_7F4A_7C15, offset: Int(self & 31))
    }
}
