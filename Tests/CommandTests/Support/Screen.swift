/// A terminal screen. Supports the parts of ECMA-48 that the program uses, and wraps long lines.
///
/// Assumes that each character is one column wide.
struct Screen {
    /// The characters of each row. A long line takes several rows.
    private var lines: [[Character]] = [[]]
    private var row = 0
    private var column = 0
    private(set) var unsupportedSequences: [String] = []

    let columns: Int

    init(columns: Int) {
        self.columns = columns
    }

    /// The rows without trailing spaces.
    var rows: [String] {
        lines.map { line in String(line.reversed().drop { $0 == " " }.reversed()) }
    }

    mutating func write(_ text: String) {
        var rest = text.unicodeScalars[...]
        while let scalar = rest.popFirst() {
            switch scalar {
            case "\r": column = 0
            case "\n": moveDown()
            case "\u{1B}":
                let end = rest.dropFirst().firstIndex { ("@"..."~").contains($0) } ?? rest.index(before: rest.endIndex)
                control(String(rest[...end]))
                rest = rest[rest.index(after: end)...]
            default: put(Character(scalar))
            }
        }
    }

    private mutating func moveDown() {
        row += 1
        if row == lines.count { lines.append([]) }
    }

    private mutating func put(_ character: Character) {
        if column == columns {
            column = 0
            moveDown()
        }
        while lines[row].count <= column { lines[row].append(" ") }
        lines[row][column] = character
        column += 1
    }

    private mutating func control(_ sequence: String) {
        if sequence == "[J" {
            lines[row].removeSubrange(min(column, lines[row].count)...)
            lines.removeSubrange((row + 1)...)
        } else if sequence.hasPrefix("["), sequence.hasSuffix("A"), let count = Int(sequence.dropFirst().dropLast()) {
            row = max(0, row - count)
        } else if !(sequence.hasPrefix("[") && sequence.hasSuffix("m")) {
            unsupportedSequences.append(sequence)
        }
    }
}
