import Foundation

/// Where a ``SlotIndex`` begins to look for an identity.
package struct SlotHash: Sendable {
    /// Spread evenly over all values.
    package var bits: UInt64
    /// How many places further on, 0 to 31: neighbours that are asked for one after the other are then side by side in memory.
    package var offset = 0

    package init(bits: UInt64, offset: Int = 0) {
        self.bits = bits
        self.offset = offset
    }
}

/// What a ``SlotIndex`` finds an element by.
package protocol SlotIdentity: Hashable {
    var slotHash: SlotHash { get }
}

extension SessionID: SlotIdentity {
    /// Drawn anew in each process: whoever chooses identities can't choose collisions.
    private static let hashKeys = (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max))

    /// Both halves of the product of the keyed halves (folded multiplication), a fraction of the time of the standard library's hash.
    package var slotHash: SlotHash {
        let bytes = uuid.uuid
        let (left, right) = unsafe unsafeBitCast(bytes, to: (UInt64, UInt64).self)
        let keys = Self.hashKeys
        let product = (left ^ keys.0).multipliedFullWidth(by: right ^ keys.1)
        return SlotHash(bits: product.high ^ product.low)
    }
}

extension SessionKey: SlotIdentity {
    /// Keys are numbers that the queue gives, one after the other: 32 of them share a hash (Fibonacci hashing; Knuth, volume 3, section 6.4).
    package var slotHash: SlotHash {
        SlotHash(bits: UInt64(bitPattern: self >> 5) &* 0x9E37_79B9_7F4A_7C15, offset: Int(self & 31))
    }
}
