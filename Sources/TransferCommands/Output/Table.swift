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
        let widths = columns.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        return all.map { row in
            let cells = columns.indices.map { column in
                let padding = String(repeating: " ", count: widths[column] - row[column].count)
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
        guard unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return self }
        var scalars = String.UnicodeScalarView()
        for scalar in unicodeScalars {
            scalars.append(scalar.properties.generalCategory == .control ? "\u{FFFD}" : scalar)
        }
        return String(scalars)
    }
}
