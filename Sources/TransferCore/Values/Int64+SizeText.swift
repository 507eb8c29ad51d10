extension Int64 {
    private static let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]

    /// The number of bytes as text: in bytes, or in a larger binary unit with at most three significant digits.
    package var sizeText: String {
        var value = Double(self)
        var unit = 0
        // Choose the unit and the digits by the rounded value. Otherwise, 999.5 would be shown with four digits.
        while abs(value) >= 999.5, unit < Self.units.count - 1 {
            value /= 1024
            unit += 1
        }
        if unit == 0 { return "\(self) B" }
        let (scale, digits) = abs(value) < 9.995 ? (100, 2) : abs(value) < 99.95 ? (10, 1) : (1, 0)
        let (whole, fraction) = Int((abs(value) * Double(scale)).rounded(.toNearestOrEven)).quotientAndRemainder(dividingBy: scale)
        let point = digits == 0 ? "" : "." + String(repeating: "0", count: digits - String(fraction).count) + String(fraction)
        return "\(self < 0 ? "-" : "")\(whole)\(point) \(Self.units[unit])"
    }
}
