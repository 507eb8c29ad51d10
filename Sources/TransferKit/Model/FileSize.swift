package import SystemPackage
package import TransferCore

/// The bounds of sizes. File systems, servers and clients choose sizes, so the queue checks them before it adds them up.
package enum FileSize {
    /// The size of the largest file that a session takes: 64 PiB, in bytes. A sparse file can claim more.
    package static let maximum: Int64 = 1 << 56
    /// The most bytes that the files of one session come to: 1 EiB. The store accepts no larger sum.
    package static let sessionMaximum: Int64 = 1 << 60

    /// The error for a local file that is larger than ``maximum``.
    package static func tooLarge(_ path: FilePath) -> TransferError {
        TransferError(.unsupported, .tooLarge, "\(path) claims more than 64 PiB, which is the largest size of a file.")
    }

    /// The error for a local file with which a session would exceed ``sessionMaximum``.
    package static func exceedsSession(_ path: FilePath) -> TransferError {
        TransferError(
            .unsupported, .tooLarge, "With \(path), the session's files would come to more than 1 EiB. Divide them among several sessions.")
    }
}

extension FixedWidthInteger {
    /// The sum, or the bound of the type that it exceeds.
    package func addingSaturated(_ other: Self) -> Self {
        let (sum, overflows) = addingReportingOverflow(other)
        guard overflows else { return sum }
        return other < 0 ? .min : .max
    }

    /// The difference, or the bound of the type that it exceeds.
    package func subtractingSaturated(_ other: Self) -> Self {
        let (difference, overflows) = subtractingReportingOverflow(other)
        guard overflows else { return difference }
        return other < 0 ? .max : .min
    }

    /// Adds a number; stops at the bound of the type.
    package mutating func addSaturated(_ other: Self) {
        self = addingSaturated(other)
    }
}
