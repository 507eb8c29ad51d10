extension String {
    /// The text with control characters replaced by U+FFFD. Names from file systems and servers can contain such characters.
    package var withoutControlCharacters: String {
        guard unicodeScalars.contains(where: \.isControl) else { return self }
        var scalars = String.UnicodeScalarView()
        for scalar in unicodeScalars { scalars.append(scalar.isControl ? "\u{FFFD}" : scalar) }
        return String(scalars)
    }
}

extension Unicode.Scalar {
    /// Whether the scalar can control a terminal or the direction of text (Unicode Standard Annex 9, section 2).
    package var isControl: Bool {
        switch value {
        case 0x00...0x1F, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069, 0x200E, 0x200F, 0x061C: true
        default: false
        }
    }
}
