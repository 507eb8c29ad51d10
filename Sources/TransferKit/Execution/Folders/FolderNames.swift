#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A collection of the names of a folder's entries. Returns the names in the order of their bytes.
///
/// If the names need too much memory, keeps only the names that come first. The folder must then be read again for the other names.
struct FolderNames {
    private struct Slot {
        /// The index of the name's first byte in `bytes`.
        let start: UInt32
        let length: UInt16

        var range: Range<Int> { Int(start)..<Int(start) + Int(length) }
    }

    /// The last removed name; before the first removal, the name passed to the initializer. Only names after this name are kept.
    private(set) var last: [UInt8]?
    private let maximumBytes: Int
    private var bytes: [UInt8] = []
    /// After ``arrange()``, a binary heap whose first element is the first name in order.
    private var slots: [Slot] = []
    /// The last name that was kept when names were dropped; nil if no name was dropped.
    private var bound: [UInt8]?

    /// - Parameters:
    ///   - last: The name after which the names begin; nil for all names.
    ///   - maximumBytes: The memory for names, in bytes; less than 2 GiB.
    init(after last: [UInt8]?, maximumBytes: Int) {
        self.last = last
        self.maximumBytes = maximumBytes
    }

    /// Whether no name was dropped.
    var isComplete: Bool { bound == nil }

    /// The memory that the names use, in bytes.
    var size: Int { bytes.count + slots.count * MemoryLayout<Slot>.stride }

    mutating func insert(_ name: [UInt8]) {
        if let last, !last.lexicographicallyPrecedes(name) { return }
        if let bound, bound.lexicographicallyPrecedes(name) { return }
        // `maximumBytes` is less than 2 GiB, and a name has at most NAME_MAX bytes (limits.h).
        slots.append(Slot(start: UInt32(bytes.count), length: UInt16(name.count)))
        bytes += name
        if size > maximumBytes, slots.count > 1 { dropSecondHalf() }
    }

    private mutating func dropSecondHalf() {
        let sorted = slots.sorted { precedes($0, $1) }.prefix(slots.count / 2)
        var kept: [UInt8] = []
        slots = sorted.map { slot in
            defer { kept += name(slot) }
            return Slot(start: UInt32(kept.count), length: slot.length)
        }
        bytes = kept
        bound = slots.last.map { Array(name($0)) }
    }

    /// Prepares the removal of names. Called after all names have been inserted.
    mutating func arrange() {
        for index in stride(from: slots.count / 2 - 1, through: 0, by: -1) { siftDown(index) }
    }

    /// Removes and returns the first name; nil if there are no more names. Returns a name that was inserted several times only once.
    mutating func removeFirst() -> [UInt8]? {
        while let first = slots.first {
            let lastSlot = slots.removeLast()
            if !slots.isEmpty {
                slots[0] = lastSlot
                siftDown(0)
            }
            guard !(last?.elementsEqual(name(first)) ?? false) else { continue }
            last = Array(name(first))
            return last
        }
        (bytes, slots) = ([], [])
        return nil
    }

    private mutating func siftDown(_ index: Int) {
        var index = index
        while true {
            var child = 2 * index + 1
            guard child < slots.count else { return }
            if child + 1 < slots.count, precedes(slots[child + 1], slots[child]) { child += 1 }
            guard precedes(slots[child], slots[index]) else { return }
            slots.swapAt(index, child)
            index = child
        }
    }

    private func name(_ slot: Slot) -> ArraySlice<UInt8> { bytes[slot.range] }

    private func precedes(_ first: Slot, _ second: Slot) -> Bool {
        let order = unsafe bytes.withUnsafeBytes { bytes in
            // A name has at least one byte, so there is a base address.
            guard let base = bytes.baseAddress else { return CInt(0) }
            return unsafe memcmp(base + Int(first.start), base + Int(second.start), Int(min(first.length, second.length)))
        }
        return order == 0 ? first.length < second.length : order < 0
    }
}
