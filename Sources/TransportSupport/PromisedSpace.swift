import Locking
import Synchronization

/// The disk space that the unfinished downloads of this process still need, by device.
///
/// Not all file systems can reserve space (fallocate(2)); NFS version 3, ZFS and some FUSE file systems can't. Without this record,
/// downloads that do not fit on the disk together could all begin. They would fill the disk, and none of them would complete.
package final class PromisedSpace: Sendable {
    /// A promise of disk space to one download. The promise ends when its last reference is released.
    final class Promise: Sendable {
        private let record: PromisedSpace
        private let device: UInt64
        private let number: UInt64
        private let bytes: Int64
        /// The number of bytes that are already on the disk.
        private let storedBytes = Atomic<Int64>(0)

        fileprivate init(_ record: PromisedSpace, device: UInt64, number: UInt64, bytes: Int64) {
            (self.record, self.device, self.number, self.bytes) = (record, device, number, bytes)
        }

        deinit {
            record.remove(number, device)
        }

        /// Reduces the promise by the bytes that are on the disk, because the free space no longer includes them.
        ///
        /// - Parameter count: The total number of bytes stored since the promise was made.
        func recordStored(_ count: Int64) {
            storedBytes.max(count, ordering: .relaxed)
        }

        /// The promised bytes that are not on the disk yet.
        fileprivate var remainingBytes: Int64 { max(0, bytes - storedBytes.load(ordering: .relaxed)) }

        /// The bytes that earlier promises on the same device still need. If two downloads begin at the same time, only the later promise counts
        /// the earlier one.
        var bytesPromisedEarlier: Int64 { record.bytes(before: number, device) }
    }

    private struct Entry {
        weak let promise: Promise?
    }

    private struct State: Sendable {
        var next: UInt64 = 0
        var entries: [UInt64: [UInt64: Entry]] = [:]
    }

    /// The record of this process.
    static let shared = PromisedSpace()

    private let state = Locked(State())

    /// Creates an empty record.
    package init() {}

    /// Promises space on a device to a download.
    ///
    /// - Returns: The promise, which lasts as long as the returned object.
    func promise(_ bytes: Int64, on device: UInt64) -> Promise {
        state.withLock { state in
            state.next += 1
            let promise = Promise(self, device: device, number: state.next, bytes: bytes)
            state.entries[device, default: [:]][state.next] = Entry(promise: promise)
            return promise
        }
    }

    private func remove(_ number: UInt64, _ device: UInt64) {
        state.withLock { state in
            state.entries[device]?[number] = nil
            if state.entries[device]?.isEmpty == true { state.entries[device] = nil }
        }
    }

    private func bytes(before number: UInt64, _ device: UInt64) -> Int64 {
        // Return the promises: their deinitializer takes the lock, so they must not be released under it.
        let promises = state.withLock { state in
            state.entries[device]?.compactMap { $0.key < number ? $0.value.promise : nil } ?? []
        }
        return promises.reduce(0) { sum, promise in
            let (total, overflow) = sum.addingReportingOverflow(promise.remainingBytes)
            return overflow ? .max : total
        }
    }
}
