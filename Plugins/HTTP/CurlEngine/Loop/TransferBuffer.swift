/// Storage for bytes that goes back and forth between the loop's thread and one that may block, so that it is allocated once for a transfer.
@safe final class TransferBuffer: Sendable {
    nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer  // Of whoever was handed the buffer last; each hand-over takes a lock.

    init(count: Int) {
        unsafe bytes = .allocate(byteCount: count, alignment: 4096)
    }

    deinit {
        unsafe bytes.deallocate()
    }
}
