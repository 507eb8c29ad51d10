/// A buffer that the loop's thread and a thread that may block pass back and forth. It is allocated only once per transfer.
@safe final class TransferBuffer: Sendable {
    nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer  // Owned by the last receiver; each handover takes a lock.

    init(count: Int) {
        unsafe bytes = .allocate(byteCount: count, alignment: 4096)
    }

    deinit {
        unsafe bytes.deallocate()
    }
}
