import Foundation
import Synchronization
import SystemPackage

/// A simulated drive that fails once, after a given number of bytes, as if it were unplugged and attached again.
final class UnpluggedDrive: Sendable {
    /// The number of bytes until the drive is unplugged; nil if it stays attached.
    private let remainingBytes = Mutex<Int?>(nil)

    /// Unplugs the drive after `bytes` more bytes.
    func unplug(after bytes: Int) {
        remainingBytes.withLock { $0 = bytes }
    }

    /// Returns the beginning of a block, up to the byte at which the drive is unplugged.
    ///
    /// - Throws: `Errno.ioError` for the first block after the drive was unplugged.
    func pass(_ block: Data) throws -> Data {
        try remainingBytes.withLock { remainingBytes in
            guard let count = remainingBytes else { return block }
            guard count > 0 else {
                remainingBytes = nil
                throw Errno.ioError
            }
            let passed = block.prefix(count)
            remainingBytes = count - passed.count
            return passed
        }
    }
}
