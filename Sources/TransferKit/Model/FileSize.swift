package import SystemPackage
package import TransferCore

/// The maximum sizes of files and sessions. The queue checks each size before it adds up sizes, because file systems, servers and clients can report
/// sizes whose sum would overflow.
package enum FileSize {
    /// The largest size of a file in a session, in bytes: 64 PiB. A sparse file can report a larger size.
    package static let maximum: Int64 = 1 << 56
    /// The largest total size of a session's files, in bytes: 1 EiB. The queue limits totals to this value.
    package static let sessionMaximum: Int64 = 1 << 60

    /// Returns the error for a local file that is larger than ``maximum``.
    package static func tooLarge(_ path: FilePath) -> TransferError {
        TransferError(.unsupported, .tooLarge, "The size of \(path) exceeds 64 PiB, the largest supported size of a file.")
    }

    /// Returns the error for a local file that would make its session exceed ``sessionMaximum``.
    package static func exceedsSession(_ path: FilePath) -> TransferError {
        TransferError(
            .unsupported, .tooLarge, "With \(path), the session's files would exceed 1 EiB. Divide them among several sessions.")
    }
}

extension FixedWidthInteger {
    /// Returns the sum, or the nearest bound of the type if the sum is out of range.
    package func addingSaturated(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        return other < 0 ? .min : .max
    }

    /// Returns the difference, or the nearest bound of the type if the difference is out of range.
    package func subtractingSaturated(_ other: Self) -> Self {
        let (difference, overflows) = subtractingReportingOverflow(other)
        guard overflows else { return difference }
        return other < 0 ? .max : .min
    }

    /// Adds a number. The result is limited to the bounds of the type.
    package mutating func addSaturated(_ other: Self) {
        self = addingSaturated(other)
    }
}
