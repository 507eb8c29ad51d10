/// A Fenwick tree of the number of elements in each part of a sequence (Fenwick, 1994). Finds the number of elements before a part, and the
/// part that contains the n-th element, in logarithmic time.
package struct PrefixCounts: Sendable {
    /// Node i holds the sum of the i & -i parts that end with part i. Nodes and parts are counted from 1 here.
    private var nodes: ContiguousArray<Int> = []

    /// The sum of all counts.
    package private(set) var total = 0

    package init() {}

    package init(_ counts: some Sequence<Int>) {
        for count in counts { append(count) }
    }

    /// Adds a part at the end.
    package mutating func append(_ count: Int) {
        let node = nodes.count + 1
        var sum = count
        var child = node - 1
        while child > node - (node & -node) {
            sum += nodes[child - 1]
            child -= child & -child
        }
        nodes.append(sum)
        total += count
    }

    /// Changes the count of a part.
    package mutating func add(_ difference: Int, toPart part: Int) {
        var node = part + 1
        while node <= nodes.count {
            nodes[node - 1] += difference
            node += node & -node
        }
        total += difference
    }

    /// The number of elements before a part.
    package func count(before part: Int) -> Int {
        var sum = 0
        var node = part
        while node > 0 {
            sum += nodes[node - 1]
            node -= node & -node
        }
        return sum
    }

    /// The part that contains an element, and the element's offset in the part; the index must be in `0..<total`.
    package func part(holding index: Int) -> (part: Int, offset: Int) {
        precondition(index >= 0 && index < total, "The index is out of range.")
        var part = 0
        var offset = index
        // The greatest power of two that does not exceed the number of nodes.
        var step = 1 << (Int.bitWidth - 1 - nodes.count.leadingZeroBitCount)
        while step > 0 {
            if part + step <= nodes.count, nodes[part + step - 1] <= offset {
                part += step
                offset -= nodes[part - 1]
            }
            step /= 2
        }
        return (part, offset)
    }
}
