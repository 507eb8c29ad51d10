import Locking
import Synchronization

/// The disk space that the unfinished downloads of this process still need, by device.
///
/// Not all file systems can reserve space (fallocate(2)); NFS version 3, ZFS and some FUSE file systems can't. Without this record, several
/// downloads could begin that do not fit on the disk together. They would fill the disk, and none of them would complete.
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

        /// Records that bytes are on the disk, so they are no longer part of its free space.
        ///
        /// - Parameter count: The number of bytes stored since the promise was made.
        func store(_ count: Int64) {
            storedBytes.max(count, ordering: .relaxed)
        }

        fileprivate var rest: Int64 { max(0, bytes - storedBytes.load(ordering: .relaxed)) }

        /// The bytes that earlier promises on the same device still need. Of two downloads that begin at the same time, only one counts the other.
        var earlierBytes: Int64 { record.bytes(before: number, device) }
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

    package init() {}

    /// Promises space on a device to a download.
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
        // The promises must not be released while the lock is held, because their deinitializer takes the lock.
        let promises = state.withLock { state in
            state.entries[device]?.compactMap { $0.key < number ? $0.value.promise : nil } ?? []
        }
        return promises.reduce(0) { sum, promise in
            let (total, isBeyond) = sum.addingReportingOverflow(promise.rest)
            return isBeyond ? .max : total
        }
    }
}
