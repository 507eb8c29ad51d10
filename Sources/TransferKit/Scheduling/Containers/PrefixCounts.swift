/// A Fenwick tree of the number of elements in each block of a sequence (Fenwick, 1994). Finds the number of elements before a block, and the
/// block that contains the n-th element, in logarithmic time.
package struct PrefixCounts: Sendable {
    /// Node i holds the sum of the counts of i & -i consecutive blocks, the last of which is block i. In this rule, nodes and blocks are numbered
    /// from 1.
    private var nodes: ContiguousArray<Int> = []

    package private(set) var total = 0

    package init() {}

    package init(_ counts: some Sequence<Int>) {
        for count in counts { append(count) }
    }

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

    package mutating func add(_ difference: Int, toBlock block: Int) {
        var node = block + 1
        while node <= nodes.count {
            nodes[node - 1] += difference
            node += node & -node
        }
        total += difference
    }

    package func count(before block: Int) -> Int {
        var sum = 0
        var node = block
        while node > 0 {
            sum += nodes[node - 1]
            node -= node & -node
        }
        return sum
    }

    /// The block that contains an element, and the element's offset in the block; the index must be in `0..<total`.
    package func block(holding index: Int) -> (block: Int, offset: Int) {
        precondition(index >= 0 && index < total, "The index is out of range.")
        var block = 0
        var offset = index
        // The greatest power of two that does not exceed the number of nodes.
        var step = 1 << (Int.bitWidth - 1 - nodes.count.leadingZeroBitCount)
        while step > 0 {
            if block + step <= nodes.count, nodes[block + step - 1] <= offset {
                block += step
                offset -= nodes[block - 1]
            }
            step /= 2
        }
        return (block, offset)
    }
}
