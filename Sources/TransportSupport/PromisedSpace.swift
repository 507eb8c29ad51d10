import Locking
import Synchronization
import TransferCore

/// The disk space that the unfinished downloads of this process still need, by device.
///
/// Not all file systems can reserve space (fallocate(2)); NFS version 3, ZFS and some FUSE file systems can't. Without this object,
/// downloads that do not fit on the disk together could all begin. They would fill the disk, and none of them would complete.
package final class PromisedSpace: Sendable {
    /// A promise of disk space to one download. The promise ends when its last reference is released.
    final class Promise: Sendable {
        private let space: PromisedSpace
        private let device: UInt64
        private let number: UInt64
        private let bytes: Int64
        /// The number of bytes that are already on the disk.
        private let storedBytes = Atomic<Int64>(0)

        fileprivate init(_ space: PromisedSpace, device: UInt64, number: UInt64, bytes: Int64) {
            (self.space, self.device, self.number, self.bytes) = (space, device, number, bytes)
        }

        deinit {
            space.remove(number, device)
        }

        /// Reduces the promise by the bytes that are on the disk, because these bytes have already reduced the free space.
        ///
        /// - Parameter count: The total number of bytes stored since the promise was made.
        func recordStored(_ count: Int64) {
            storedBytes.max(count, ordering: .relaxed)
        }

        fileprivate var remainingBytes: Int64 { max(0, bytes - storedBytes.load(ordering: .relaxed)) }
    }

    private struct WeakPromise {
        weak let promise: Promise?
    }

    private struct State: Sendable {
        var lastNumber: UInt64 = 0
        /// The promises, by device and number.
        var promises: [UInt64: [UInt64: WeakPromise]] = [:]
        /// The number of promises made on each device.
        var counts: [UInt64: UInt64] = [:]
    }

    static let shared = PromisedSpace()

    private let state = Locked(State())

    package init() {}

    /// Promises space on a device to a download, if the free space suffices for this download and all earlier promises.
    ///
    /// A download that does not fit gets no promise, not even for the time of this call. Otherwise, a server that reports an impossible
    /// size could make other downloads fail.
    ///
    /// - Parameters:
    ///   - bytes: The number of bytes that the download needs.
    ///   - device: The device number of the download's folder.
    ///   - free: Reads the free space of the device in bytes. May block. Called again if another download gets a promise at the same time.
    /// - Returns: The promise, which lasts as long as the returned object, or nil if the space does not suffice; the number of free bytes;
    ///   and the number of bytes that earlier promises still need.
    /// - Throws: The error of `free`.
    func promise(
        _ bytes: Int64, on device: UInt64, free: () throws(TransferError) -> Int64
    ) throws(TransferError) -> (promise: Promise?, free: Int64, promised: Int64) {
        while true {
            // Read the free space last. If another download stores bytes between the two reads, these bytes then count twice. In the other order,
            // they would not count at all.
            let (count, promised) = remaining(on: device)
            let free = try free()
            guard free - promised >= bytes else { return (nil, free, promised) }
            let promise: Promise? = state.withLock { state in
                guard state.counts[device, default: 0] == count else { return nil }
                state.counts[device] = count + 1
                state.lastNumber += 1
                let promise = Promise(self, device: device, number: state.lastNumber, bytes: bytes)
                state.promises[device, default: [:]][state.lastNumber] = WeakPromise(promise: promise)
                return promise
            }
            if let promise { return (promise, free, promised) }
        }
    }

    private func remove(_ number: UInt64, _ device: UInt64) {
        state.withLock { state in
            state.promises[device]?[number] = nil
            if state.promises[device]?.isEmpty == true { state.promises[device] = nil }
        }
    }

    /// Returns the number of promises made on a device so far, and the bytes that they still need.
    private func remaining(on device: UInt64) -> (count: UInt64, bytes: Int64) {
        // Return the promises from the closure. A deinitializer takes the lock, so no promise must be released while the lock is held.
        let (count, promises) = state.withLock { ($0.counts[device, default: 0], $0.promises[device]?.values.compactMap(\.promise) ?? []) }
        let bytes = promises.reduce(Int64(0)) { sum, promise in
            let (total, overflow) = sum.addingReportingOverflow(promise.remainingBytes)
            return overflow ? .max : total
        }
        return (count, bytes)
    }
}
