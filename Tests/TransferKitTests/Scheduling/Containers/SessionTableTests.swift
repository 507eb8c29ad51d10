import Foundation
import Testing
import TransferKit

@Suite struct SessionTableTests {
    struct Element: SessionTableElement {
        var key: SessionKey
        var id = SessionID()
        var value = 0
    }

    @Test(arguments: [3, 60, 5_000], 0..<4)
    func matchesModelForRandomChanges(size: Int, seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var table = SessionTable<Element>()
        var reference: [SessionKey: Element] = [:]
        var keys: [SessionKey] = []
        var removed: [Element] = []
        var lastKey: SessionKey = 0
        for step in 0..<(4 * size + 2_000) {
            let context: Comment = "size \(size), seed \(seed), step \(step)"
            switch Int.random(in: 0..<(keys.count < size ? 8 : 4), using: &random) {
            case 0:
                let key = keys.randomElement(using: &random) ?? 1
                let position = keys.firstIndex(of: key)
                let element = table.remove(key)
                try #require(element == reference.removeValue(forKey: key), context)
                if let position { keys.remove(at: position) }
                if let element { removed.append(element) }
            case 1:
                guard let key = keys.randomElement(using: &random), var element = reference[key] else { continue }
                element.value = step
                reference[key] = element
                table.update(element)
            case 2:
                guard let element = removed.popLast() else { continue }
                table.insert(element)
                reference[element.key] = element
                keys.append(element.key)
            case 3:
                if removed.count > 10 { removed.removeFirst() }
            default:
                lastKey += SessionKey.random(in: 1...1_000_000_000, using: &random)
                let element = Element(key: lastKey, value: step)
                table.insert(element)
                reference[lastKey] = element
                keys.append(lastKey)
            }
            try #require(table.count == reference.count, context)
            if step.isMultiple(of: 500) { try check(table, reference, absent: removed, context) }
        }
        try check(table, reference, absent: removed, "size \(size), seed \(seed), at the end")
    }

    @Test(arguments: [0, 1, 2, 3, 7, 8, 1_000])
    func canBeRefilledAfterDeletingAllSessions(size: Int) throws {
        var table = SessionTable<Element>()
        if size.isMultiple(of: 2) { table.reserveLoading(size) }
        let elements = (0..<size).map { Element(key: SessionKey($0) + 1) }
        for round in 0..<3 {
            for element in elements { table.insert(element) }
            try check(table, Dictionary(uniqueKeysWithValues: elements.map { ($0.key, $0) }), absent: [], "round \(round)")
            for element in round == 0 ? elements : elements.reversed() { try #require(table.remove(element.key) == element) }
            try check(table, [:], absent: elements, "round \(round)")
        }
    }

    @Test(arguments: [0, 1, 7, 1_000])
    func loadsAllSessionsInOneStep(size: Int) throws {
        var table = SessionTable<Element>()
        let elements = (0..<size).map { Element(key: SessionKey($0) * 10) }
        table.reserveLoading(size)
        for element in elements { table.load(element) }
        #expect(table.finishLoading() == [])
        try check(table, Dictionary(uniqueKeysWithValues: elements.map { ($0.key, $0) }), absent: [], "loaded")
        let more = (0..<size).map { Element(key: SessionKey($0) * 10 + 1) }
        for element in more { table.insert(element) }
        for element in elements { try #require(table.remove(element.key) == element) }
        try check(table, Dictionary(uniqueKeysWithValues: more.map { ($0.key, $0) }), absent: elements, "changed")
    }

    @Test func ignoresDuplicatesOnLoad() throws {
        var table = SessionTable<Element>()
        let elements = (1...500).map { Element(key: SessionKey($0)) }
        let sameIDs = [3, 250, 499].map { Element(key: SessionKey(1_000 + $0), id: elements[$0].id) }
        for element in elements + sameIDs + [Element(key: 7)] { table.load(element) }
        #expect(Set(table.finishLoading()) == [7, 1_003, 1_250, 1_499])
        try check(table, Dictionary(uniqueKeysWithValues: elements.map { ($0.key, $0) }), absent: [], "the first elements stay")
    }

    @Test func equalityComparesContent() {
        let elements = (1...1_500).map { Element(key: SessionKey($0)) }
        var table = SessionTable<Element>()
        for element in elements { table.insert(element) }
        var reversed = SessionTable<Element>()
        for element in elements.reversed() { reversed.insert(element) }
        for element in elements.prefix(700) { reversed.remove(element.key) }
        #expect(reversed != table)
        for element in elements.prefix(700) { reversed.insert(element) }
        #expect(reversed == table)
        reversed.update(Element(key: 5, id: elements[4].id, value: 1))
        #expect(reversed != table)
        reversed.remove(5)
        reversed.insert(Element(key: 5))
        #expect(reversed != table, "the ID differs")
    }

    @Test func copiesAreIndependent() throws {
        var table = SessionTable<Element>()
        let elements = (1...50).map { Element(key: SessionKey($0)) }
        for element in elements { table.insert(element) }
        let copy = table
        for element in elements.prefix(40) { table.remove(element.key) }
        try check(copy, Dictionary(uniqueKeysWithValues: elements.map { ($0.key, $0) }), absent: [], "the copy")
    }

    private func check(
        _ table: SessionTable<Element>, _ reference: [SessionKey: Element], absent: [Element], _ context: Comment
    ) throws {
        try #require(Dictionary(table.map { ($0.key, $0) }) { _, _ in throw Duplicate() } == reference, context)
        try #require(table.count == reference.count, context)
        for element in reference.values {
            try #require(table[element.key] == element, context)
            try #require(table.key(of: element.id) == element.key, context)
            try #require(table.contains(element.id), context)
        }
        for element in absent {
            try #require(table[element.key] == nil, context)
            try #require(table.key(of: element.id) == nil, context)
            try #require(!table.contains(element.id), context)
        }
    }

    private struct Duplicate: Error {}
}
