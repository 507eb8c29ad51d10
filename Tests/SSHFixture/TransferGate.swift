package import Foundation
import Locking

/// Says how far a transfer gets that goes through a relay, so that however slow a machine is, a test gets at it in the middle.
package final class TransferGate: Sendable {
    /// Yields when something is held up.
    package let holds: AsyncStream<Void>
    private let hold: AsyncStream<Void>.Continuation
    private let isPassable: @Sendable () -> Bool
    private let isOpen = Locked(false)
    private let counts = Locked<[RawServer.Direction: Int64]>([:])

    /// - Parameter isPassable: Whether what comes now may pass.
    package init(while isPassable: @escaping @Sendable () -> Bool) {
        self.isPassable = isPassable
        (holds, hold) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Lets all pass until a part in a folder has so many bytes.
    package convenience init(of folder: URL, at limit: Int64) {
        self.init { Self.partSize(in: folder) ?? -1 < limit }
    }

    /// How large the part is that is written to a folder now, in bytes; nil if there is none.
    package static func partSize(in folder: URL) -> Int64? {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let parts = names.filter { $0.hasSuffix(".part") }.map { folder.appending(path: $0).path }
        return parts.compactMap { (try? FileManager.default.attributesOfItem(atPath: $0))?[.size] as? Int64 }.max()
    }

    /// For ``RawServer/relay(to:limit:bufferSize:passes:)``.
    package func passes(_ direction: RawServer.Direction, _ count: Int) -> Bool {
        counts.withLock { $0[direction, default: 0] += Int64(count) }
        if isOpen.withLock({ $0 }) || isPassable() { return true }
        hold.yield()
        return false
    }

    /// Lets everything pass that connections bring which were not held up yet.
    package func open() { isOpen.withLock { $0 = true } }

    /// How many bytes came in a direction since this was asked last.
    package func takeCount(_ direction: RawServer.Direction) -> Int64 { counts.withLock { $0.removeValue(forKey: direction) ?? 0 } }
}
