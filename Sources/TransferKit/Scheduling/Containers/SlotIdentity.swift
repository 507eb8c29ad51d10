import Foundation

/// The hash of an identity, which determines where a search in a ``SlotIndex`` starts.
package struct SlotHash: Sendable {
    /// A hash with a uniform distribution over all values.
    package var bits: UInt64
    /// The number of buckets, 0 to 31, from the bucket that `bits` selects to the first bucket of the search. Searches for identities with the
    /// same bits and consecutive offsets therefore start at adjacent buckets.
    package var offset = 0

    package init(bits: UInt64, offset: Int = 0) {
        self.bits = bits
        self.offset = offset
    }
}

/// The identity by which a ``SlotIndex`` finds an element.
package protocol SlotIdentity: Hashable {
    var slotHash: SlotHash { get }
}

extension SessionID: SlotIdentity {
    /// Random in each process, so that an attacker can't choose IDs that collide.
    private static let hashKeys = (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max))

    /// A folded multiplication: multiplies the two keyed halves of the UUID, and combines both halves of the product. Much faster than the
    /// standard library's hash.
    package var slotHash: SlotHash {
        let bytes = uuid.uuid
        let (left, right) = unsafe unsafeBitCast(bytes, to: (UInt64, UInt64).self)
        let keys = Self.hashKeys
        let product = (left ^ keys.0).multipliedFullWidth(by: right ^ keys.1)
        return SlotHash(bits: product.high ^ product.low)
    }
}

extension SessionKey: SlotIdentity {
    /// The queue assigns consecutive numbers as keys. Each block of 32 consecutive keys shares one hash (Fibonacci hashing; Knuth, volume 3,
    /// section 6.4).
    package var slotHash: SlotHash {
        SlotHash(bits: UInt64(bitPattern: self >> 5) &* 0x9E37_79B9_7F4A_7C15, offset: Int(self & 31))
    }
}
