/// A size in bytes or a rate in bytes per second. The number may have a binary unit (K, M, G or T, or KiB, MiB, …) or a decimal unit (KB, MB, …). A
/// rate may end in `/s`.
package struct ByteCount: Sendable {
    package let bytes: Int64

    private static let units: [String: Double] = [
        "": 1, "B": 1, "K": 0x1p10, "M": 0x1p20, "G": 0x1p30, "T": 0x1p40, "KIB": 0x1p10, "MIB": 0x1p20, "GIB": 0x1p30, "TIB": 0x1p40,
        "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
    ]

    /// Parses a size or a rate, and rounds a fraction of a byte down. Nil if the text is invalid, or if the size or rate is more than 0 but
    /// less than one byte.
    package init?(_ text: String) {
        let quantity = text.hasSuffix("/s") ? text.dropLast(2) : text[...]
        let digits = quantity.prefix { $0.isASCIIDigit || $0 == "." }
        guard let unit = Self.units[quantity[digits.endIndex...].uppercased()] else { return nil }
        // Only digits and one point: no sign, exponent or "inf".
        guard digits.first?.isASCIIDigit == true, let number = Double(digits),
            let bytes = Int64(exactly: (number * unit).rounded(.down)), bytes > 0 || number == 0
        else { return nil }
        self.bytes = bytes
    }

    /// The limit in bytes, or in bytes per second for a rate; nil (no limit) if the value is 0.
    package var limit: Int64? { bytes == 0 ? nil : bytes }
}

extension Character {
    fileprivate var isASCIIDigit: Bool { isASCII && isNumber }
}
