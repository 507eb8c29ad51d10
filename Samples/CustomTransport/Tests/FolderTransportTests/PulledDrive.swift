import Foundation
import Synchronization
import SystemPackage

/// A drive that is pulled out once so many bytes went through it, and is back the moment after.
final class PulledDrive: Sendable {
    private let remaining = Mutex<Int?>(nil)

    func pull(after bytes: Int) {
        remaining.withLock { $0 = bytes }
    }

    /// - Throws: What the system says of a drive that is gone.
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
