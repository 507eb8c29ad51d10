import Foundation
import Synchronization
import SystemPackage

/// A drive that is unplugged after a number of bytes, and attached again at once.
final class PulledDrive: Sendable {
    private let remaining = Mutex<Int?>(nil)

    func pull(after bytes: Int) {
        remaining.withLock { $0 = bytes }
    }

    /// Returns the bytes that pass before the drive is unplugged.
    ///
    /// - Throws: The system's error for a missing drive.
    func pass(_ piece: Data) throws -> Data {
        try remaining.withLock { remaining in
            guard let left = remaining else { return piece }
            guard left > 0 else {
                remaining = nil
                throw Errno.ioError
            }
            let passed = piece.prefix(left)
            remaining = left - passed.count
            return passed
        }
    }
}
