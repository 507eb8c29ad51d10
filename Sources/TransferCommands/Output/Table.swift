/// Rows of text in columns, for people.
struct Table {
    enum Alignment {
        case left
        case right
    }

    private let columns: [(title: String, alignment: Alignment)]
    private var rows: [[String]] = []

    init(_ columns: [(title: String, alignment: Alignment)]) {
        self.columns = columns
    }

    mutating func append(_ row: [String]) {
        rows.append(row.map(\.withoutControlCharacters))
    }

    /// All rows below their titles, each with a line break.
    var text: String {
        let all = [columns.map(\.title)] + rows
        let widths = columns.indices.map { column in all.map { $0[column].columns }.max() ?? 0 }
        return all.map { row in
            let cells = columns.indices.map { column in
                let padding = String(repeating: " ", count: widths[column] - row[column].columns)
                return columns[column].alignment == .left ? row[column] + padding : padding + row[column]
            }
            return cells.joined(separator: "  ").trimmingTrailingSpaces + "\n"
        }.joined()
    }
}

extension String {
    fileprivate var trimmingTrailingSpaces: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }

    /// The text with what could steer a terminal replaced: names come from file systems and servers.
    var withoutControlCharacters: String {
        guard unicodeScalars.contains(where: \.isControl) else { return self }
        var scalars = String.UnicodeScalarView()
        for scalar in unicodeScalars { scalars.append(scalar.isControl ? "\u{FFFD}" : scalar) }
        return String(scalars)
    }
}

extension Unicode.Scalar {
    /// Whether it steers a terminal, or changes the order in which other characters are shown (Unicode Standard Annex 9, section 2).
    fileprivate var isControl: Bool {
        switch value {
        case 0x00...0x1F, 0x7F...0x9F, 0x2028...0x202E, 0x2066...0x2069, 0x200E, 0x200F, 0x061C: true
        default: false
        }
    }
}
