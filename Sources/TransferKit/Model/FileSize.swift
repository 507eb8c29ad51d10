package import SystemPackage
package import TransferCore

/// The bounds of sizes. File systems, servers and clients choose sizes, so the queue checks them before it adds them up.
package enum FileSize {
    /// The largest size of a file in a session: 64 PiB, in bytes. A sparse file can claim more.
    package static let maximum: Int64 = 1 << 56
    /// The largest sum of the sizes of a session's files: 1 EiB, in bytes. The store accepts no larger sum.
    package static let sessionMaximum: Int64 = 1 << 60

    /// Returns the error for a local file that is larger than ``maximum``.
    package static func tooLarge(_ path: FilePath) -> TransferError {
        TransferError(.unsupported, .tooLarge, "\(path) claims more than 64 PiB, the largest supported size of a file.")
    }

    /// Returns the error for a local file with which a session would exceed ``sessionMaximum``.
    package static func exceedsSession(_ path: FilePath) -> TransferError {
        TransferError(
            .unsupported, .tooLarge, "With \(path), the session's files would exceed 1 EiB. Divide them among several sessions.")
    }
}

extension FixedWidthInteger {
    /// Returns the sum, or the nearest bound of the type if the sum exceeds it.
    package func addingSaturated(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        return other < 0 ? .min : .max
    }

    /// Returns the difference, or the nearest bound of the type if the difference exceeds it.
    package func subtractingSaturated(_ other: Self) -> Self {
        let (difference, overflows) = subtractingReportingOverflow(other)
        guard overflows else { return difference }
        return other < 0 ? .max : .min
    }

    /// Adds a number, and stops at the bounds of the type.
    package mutating func addSaturated(_ other: Self) {
        self = addingSaturated(other)
    }
}
