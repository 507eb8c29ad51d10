import TransferOutput

struct Table {
    enum Alignment {
        case left
        case right
    }

    private struct Cell {
        let text: String
        let width: Int
    }

    private var alignments: [Alignment]
    /// The first row contains the titles.
    private var rows: [[Cell]] = []
    private var widths: [Int]

    init(_ columns: [(title: String, alignment: Alignment)]) {
        alignments = columns.map(\.alignment)
        widths = columns.map { _ in 0 }
        append(columns.map(\.title))
    }

    mutating func append(_ row: [String]) {
        rows.append(
            row.map { text in
                let text = text.withoutControlCharacters
                return Cell(text: text, width: text.columns)
            })
        for (column, cell) in rows[rows.count - 1].enumerated() where cell.width > widths[column] { widths[column] = cell.width }
    }

    /// A step that makes a table narrower.
    enum Narrowing {
        /// Truncates the texts of a column as far as necessary, but not below a width in terminal columns.
        case truncate(column: Int, to: Int)
        /// Omits a column.
        case omit(column: Int)
    }

    /// Applies steps in order, until each row fits into a number of terminal columns.
    mutating func fit(into columns: Int, by steps: [Narrowing]) {
        var omitted: Set<Int> = []
        for step in steps {
            let present = widths.indices.filter { !omitted.contains($0) }
            let excess = present.reduce(2 * (present.count - 1) - columns) { $0 + widths[$1] }
            guard excess > 0 else { break }
            switch step {
            case .truncate(let column, let minimum): truncate(column, to: max(min(minimum, widths[column]), widths[column] - excess))
            case .omit(let column): omitted.insert(column)
            }
        }
        guard !omitted.isEmpty else { return }
        func remaining<Element>(_ all: [Element]) -> [Element] { all.indices.filter { !omitted.contains($0) }.map { all[$0] } }
        (alignments, widths, rows) = (remaining(alignments), remaining(widths), rows.map(remaining))
    }

    private mutating func truncate(_ column: Int, to width: Int) {
        for row in rows.indices where rows[row][column].width > width {
            rows[row][column] = Cell(text: rows[row][column].text.fitted(to: width), width: width)
        }
        widths[column] = width
    }

    /// The titles and all rows, each with a line break.
    var text: String {
        var text = ""
        text.reserveCapacity(rows.count * (widths.reduce(0, +) + 2 * widths.count))
        for row in rows {
            // Spaces are written only before the next text, so no line has trailing spaces.
            var pending = 0
            for (column, cell) in row.enumerated() {
                let padding = widths[column] - cell.width
                if alignments[column] == .right { pending += padding }
                if !cell.text.isEmpty {
                    text.append(spaces: pending)
                    text += cell.text
                    pending = 0
                }
                pending += (alignments[column] == .left ? padding : 0) + 2
            }
            text += "\n"
        }
        return text
    }
}

extension String {
    private static let spaces = String(repeating: " ", count: 100)

    fileprivate mutating func append(spaces count: Int) {
        var rest = count
        while rest > 0 {
            self += Self.spaces.prefix(rest)
            rest -= Self.spaces.utf8.count
        }
    }
}
