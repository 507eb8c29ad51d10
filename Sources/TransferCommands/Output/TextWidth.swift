extension StringProtocol {
    /// The number of terminal columns of the text.
    var columns: Int {
        // In ASCII, every character except CR LF is one byte.
        utf8.allSatisfy { $0 < 0x80 && $0 != 0x0D } ? utf8.count : reduce(0) { $0 + $1.columns }
    }

    /// The text padded with spaces to a number of terminal columns, or truncated to it with an ellipsis.
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

    /// The text, broken at spaces into lines of limited width. A word that is longer than a line stays whole.
    ///
    /// - Parameters:
    ///   - width: The maximum number of terminal columns in a line.
    ///   - indent: The number of spaces before each line after the first.
    func wrapped(to width: Int, indent: Int) -> String {
        guard columns > width else { return String(self) }
        var (text, used) = ("", 0)
        for (number, word) in split(separator: " ", omittingEmptySubsequences: false).enumerated() {
            let columns = word.columns
            if number == 0 {
                used = columns
            } else if used + 1 + columns <= width || used <= indent {
                text += " "
                used += 1 + columns
            } else {
                text += "\n" + String(repeating: " ", count: indent)
                used = indent + columns
            }
            text += word
        }
        return text
    }
}

extension Character {
    /// The blocks of wide and fullwidth characters (Unicode Standard Annex 11), which terminals draw in two columns.
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
        0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
    ]

    fileprivate var columns: Int {
        guard let scalar = unicodeScalars.first, scalar.value >= 0x300 else { return 1 }
        if scalar.properties.isEmojiPresentation || Self.wide.contains(where: { $0.contains(scalar.value) }) { return 2 }
        switch scalar.properties.generalCategory {
        // A mark without a base character, or an invisible format character.
        case .nonspacingMark, .enclosingMark, .format: return 0
        default: return 1
        }
    }
}
