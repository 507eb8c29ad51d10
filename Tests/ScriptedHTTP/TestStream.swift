package import Locking
import SystemPackage
package import TransferCore

/// A stream that a simulated app writes to a file, always a given number of bytes ahead of the confirmed offset. Confirmed bytes are
/// overwritten with zeros, as if the queue had freed their disk space.
package struct TestStream {
    package let source: UploadSource
    /// Whether the transport requested all remaining bytes of the stream.
    package let wasRequested: Locked<Bool>

    /// - Parameters:
    ///   - ahead: The number of bytes that the app writes ahead of the confirmed offset. The transport learns the end of the stream when
    ///     the app would write more than `total` bytes.
    ///   - length: The length that the app announces, or nil.
    ///   - end: The state that follows the last byte, such as a failure. Nil for a complete stream.
    ///   - onEnd: Called before the end is reported.
    package init(
        _ file: TemporaryFile, total: Int, ahead: Int, length: Int? = nil, end: SourceGrowth.Extent? = nil,
        onEnd: @escaping @Sendable () -> Void = {}
    ) throws {
        let (growth, wasRequested, path) = (Locked<SourceGrowth?>(nil), Locked(false), file.path)
        let advance: @Sendable (Int) -> Void = { reach in
            let isEnd = reach > total
            if isEnd { onEnd() }
            growth.withLock { $0 }?.update(isEnd ? end ?? .complete(Int64(total)) : .growing(Int64(reach)))
        }
        let sourceGrowth = SourceGrowth(
            .growing(0), length: length.map { Int64($0) },
            release: { offset in
                Self.clear(path, before: Int(offset))
                advance(Int(offset) + ahead)
            },
            lift: { offset in
                guard offset == .max else { return }
                wasRequested.withLock { $0 = true }
                advance(.max)
            })
        growth.withLock { $0 = sourceGrowth }
        advance(ahead)
        self.wasRequested = wasRequested
        source = UploadSource(path: path, identity: try file.source.identity, growth: sourceGrowth)
    }

    private static func clear(_ path: FilePath, before offset: Int) {
        guard let file = try? FileDescriptor.open(path, .writeOnly) else { return }
        _ = try? file.closeAfter { try file.writeAll(toAbsoluteOffset: 0, [UInt8](repeating: 0, count: offset)) }
    }
}
