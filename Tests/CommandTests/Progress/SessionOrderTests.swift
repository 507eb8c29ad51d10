import Testing
import TransferCommands
import TransferKit

@Suite struct SessionOrderTests {
    @Test(arguments: 0..<8 as Range<UInt64>) func matchesArrayAfterRandomOperations(seed: UInt64) {
        var random = SplitMix(state: seed)
        var list = (0..<2_000).map { _ in SessionID() }
        var order = SessionOrder(list)
        for _ in 0..<300 {
            switch Int.random(in: 0..<6, using: &random) {
            case 0:
                let ids = (0..<Int.random(in: 1...700, using: &random)).map { _ in SessionID() }
                let index = Int.random(in: 0...list.count, using: &random)
                list.insert(contentsOf: ids, at: index)
                order.insert(ids, at: index)
            case 1, 2:
                let index = Int.random(in: 0...list.count, using: &random)
                let id = SessionID()
                list.insert(id, at: index)
                order.insert([id], at: index)
            case 3:
                for _ in 0..<min(300, list.count) {
                    let index = Int.random(in: 0..<list.count, using: &random)
                    order.remove(at: index)
                    list.remove(at: index)
                }
            default:
                guard let id = list.randomElement(using: &random), let index = list.firstIndex(of: id) else { continue }
                #expect(order.index(of: id) == index)
            }
            #expect(order.count == list.count)
        }
        #expect(list.indices.allSatisfy { order.index(of: list[$0]) == $0 })
        #expect(order.index(of: SessionID()) == nil)
    }

    @Test func ignoresInvalidIndices() {
        var order = SessionOrder([])
        order.remove(at: 0)
        let id = SessionID()
        order.insert([id], at: 7)
        order.insert([id], at: 0)
        #expect(order.count == 1 && order.index(of: id) == 0)
        order.remove(at: 1)
        order.remove(at: -1)
        order.remove(at: 0)
        #expect(order.count == 0)
    }
}
