/// A buffer that moves back and forth between the loop's thread and a thread that may block. A transfer allocates each of its buffers once, and then
/// reuses it.
@safe final class TransferBuffer: Sendable {
    nonisolated(unsafe) let bytes: UnsafeMutableRawBufferPointer  // Owned by the last receiver; each handover takes a lock.

    init(count: Int) {
        unsafe bytes = .allocate(byteCount: count, alignment: 4096)
    }

    deinit {
        unsafe bytes.deallocate()
    }
}
