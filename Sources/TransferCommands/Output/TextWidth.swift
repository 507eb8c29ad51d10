extension StringProtocol {
    /// How many columns of a terminal the text takes.
    var columns: Int {
        // Of ASCII, only CR LF is a character of two bytes.
        utf8.allSatisfy { $0 < 0x80 && $0 != 0x0D } ? utf8.count : reduce(0) { $0 + $1.columns }
    }

    /// As much of the beginning as fits, filled up with spaces; the last column says that something is missing.
    func fitted(to width: Int) -> String {
        let columns = columns
        if columns <= width { return self + String(repeating: " ", count: width - columns) }
        var (text, used) = ("", 0)
        for character in self {
            guard used + character.columns < width else { break }
            text.append(character)
            used += character.columns
        }
        return text + "…" + String(repeating: " ", count: Swift.max(0, width - used - 1))
    }
}

extension Character {
    /// Wide and fullwidth characters of the Unicode Standard Annex 11, by blocks: those are what terminals draw over two columns.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
        0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
    ]

    fileprivate var columns: Int {
        guard let scalar = unicodeScalars.first, scalar.value >= 0x300 else { return 1 }
        if scalar.properties.isEmojiPresentation || Self.wide.contains(where: { $0.contains(scalar.value) }) { return 2 }
        switch scalar.properties.generalCategory {
        // A mark without a letter before it, or what has no shape of its own.
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: return 1
        }
    }
}
