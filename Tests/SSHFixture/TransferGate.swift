package import Foundation
import Locking

/// Pauses a transfer through a relay at a given position. A test can then act during the transfer, regardless of the machine's speed.
package final class TransferGate: Sendable {
    /// Yields when the gate blocks bytes.
    package let holds: AsyncStream<Void>
    private let hold: AsyncStream<Void>.Continuation
    private let isPassable: @Sendable () -> Bool
    private let isOpen = Locked(false)
    private let counts = Locked<[RawServer.Direction: Int64]>([:])

    /// - Parameter isPassable: Returns whether the current bytes may pass.
    package init(while isPassable: @escaping @Sendable () -> Bool) {
        self.isPassable = isPassable
        (holds, hold) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Creates a gate that passes all bytes until a part file in a folder has the given size.
    package convenience init(of folder: URL, at limit: Int64) {
        self.init { Self.partFileSize(in: folder) ?? -1 < limit }
    }

    /// Returns the size in bytes; nil if there is no part file.
    package static func partFileSize(in folder: URL) -> Int64? {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let partFiles = names.filter { $0.hasSuffix(".part") }.map { folder.appending(path: $0).path }
        return partFiles.compactMap { (try? FileManager.default.attributesOfItem(atPath: $0))?[.size] as? Int64 }.max()
    }

    /// Returns whether to forward bytes. Pass this method to ``RawServer/relay(to:limit:clientLimit:resets:bufferSize:admits:observes:passes:)``.
    package func passes(_ direction: RawServer.Direction, _ count: Int) -> Bool {
        counts.withLock { $0[direction, default: 0] += Int64(count) }
        if isOpen.withLock({ $0 }) || isPassable() { return true }
        hold.yield()
        return false
    }

    /// Opens the gate, which then passes all bytes. A connection whose bytes the gate has blocked stays blocked in the direction of these
    /// bytes.
    package func open() { isOpen.withLock { $0 = true } }

    /// Returns the number of bytes that arrived in a direction since the previous call.
    package func takeCount(_ direction: RawServer.Direction) -> Int64 { counts.withLock { $0.removeValue(forKey: direction) ?? 0 } }
}
