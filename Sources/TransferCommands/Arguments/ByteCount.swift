import ArgumentParser

/// A size in bytes or a rate in bytes per second: a number, with K, M, G or T for binary units.
struct ByteCount: ExpressibleByArgument {
    let bytes: Int64

    private static let units: [Character: Double] = ["K": 0x1p10, "M": 0x1p20, "G": 0x1p30, "T": 0x1p40]

    init?(argument: String) {
        var digits = argument[...]
        var unit = 1.0
        if let last = digits.last, let known = Self.units[Character(last.uppercased())] {
            unit = known
            digits = digits.dropLast()
        }
        // Only digits and one point: no sign, exponent or "inf".
        guard digits.first?.isASCIIDigit == true, digits.allSatisfy({ $0.isASCIIDigit || $0 == "." }), let number = Double(digits),
            let bytes = Int64(exactly: (number * unit).rounded(.down)), bytes > 0 || number == 0
        else { return nil }
        self.bytes = bytes
    }

    /// The limit in bytes, or in bytes per second for a rate; nil (no limit) if the argument is 0.
    var limit: Int64? { bytes == 0 ? nil : bytes }
}

extension Character {
    fileprivate var isASCIIDigit: Bool { isASCII && isNumber }
}
