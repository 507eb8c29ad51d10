import Testing
import TransferKit

@Suite struct SlotIndexTests {
    /// An identity with one of only seven hashes, so that searches collide and wrap around the end of the index.
    struct CollidingIdentity: SlotIdentity {
        var number: Int

        var slotHash: SlotHash { SlotHash(bits: UInt64(number % 7) << 61) }
    }

    @Test(arguments: 0..<20)
    func findsElementsDespiteCollisions(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var index = SlotIndex<CollidingIdentity, CollidingIdentity>()
        var elements: ContiguousArray<CollidingIdentity> = []
        var unused = Array(0..<100)
        for step in 0..<1_000 {
            // Every 100 steps, alternates between growing and shrinking.
            let grows = Int.random(in: 0..<4, using: &random) != 0
            if (step / 100).isMultiple(of: 2) == grows, !unused.isEmpty {
                elements.append(CollidingIdentity(number: unused.remove(at: Int.random(in: unused.indices, using: &random))))
                index.insertLast(of: elements) { $0 }
            } else if let slot = elements.indices.randomElement(using: &random) {
                index.remove(slot: slot, of: elements) { $0 }
                let last = elements.count - 1
                if slot != last { index.move(slot: last, to: slot, of: elements) { $0 } }
                unused.append(elements[slot].number)
                elements.swapAt(slot, last)
                elements.removeLast()
            }
            for (slot, element) in elements.enumerated() {
                try #require(index.slot(of: element, in: elements) { $0 } == slot, "seed \(seed), step \(step)")
            }
            for number in unused {
                try #require(index.slot(of: CollidingIdentity(number: number), in: elements) { $0 } == nil, "seed \(seed), step \(step)")
            }
        }
    }

    @Test func emptyIndexFindsNothing() {
        var index = SlotIndex<SessionKey, SessionKey>()
        #expect(index.slot(of: 1, in: []) { $0 } == nil)
        #expect(index.build(of: []) { $0 }.isEmpty)
        #expect(index.slot(of: 1, in: []) { $0 } == nil)
    }
}
