import Foundation
import Synchronization
import SystemPackage

/// A simulated drive. It is unplugged after a number of bytes, and attached again immediately after the error.
final class PulledDrive: Sendable {
    private let remaining = Mutex<Int?>(nil)

    /// Unplugs the drive after a further number of bytes has passed.
    func pull(after bytes: Int) {
        remaining.withLock { $0 = bytes }
    }

    /// Returns the part of a block that passes before the drive is unplugged.
    ///
    /// - Throws: `Errno.ioError` for the first block after the drive was unplugged.
    func pass(_ block: Data) throws -> Data {
        try remaining.withLock { remaining in
            guard let left = remaining else { return block }
            guard left > 0 else {
                remaining = nil
                throw Errno.ioError
            }
            let passed = block.prefix(left)
            remaining = left - passed.count
            return passed
        }
    }
}
