import Foundation
import Synchronization
import SystemPackage

/// A simulated drive that fails once, after a given number of bytes, as if it were unplugged and attached again.
final class UnpluggedDrive: Sendable {
    private let remaining = Mutex<Int?>(nil)

    /// Unplugs the drive after `bytes` more bytes.
    func unplug(after bytes: Int) {
        remaining.withLock { $0 = bytes }
    }

    /// Returns the beginning of a block, up to the byte at which the drive is unplugged.
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
