/// Header fields in order. Names are compared without regard to case (RFC 9110, section 5.1).
public struct HTTPHeaders: Sendable, RandomAccessCollection, ExpressibleByDictionaryLiteral {
    /// One field.
    public struct Field: Hashable, Sendable {
        /// The name as it was written.
        public var name: String
        /// The value without the white space around it.
        public var value: String
    }

    private var fields: [Field] = []

    /// Makes an empty list.
    public init() {}

    /// Makes a list of names and values.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }

    /// The first value of a name; setting it replaces all of that name, setting nil removes them.
    public subscript(name: String) -> String? {
        get { fields.first { $0.name.equalsIgnoringCase(name) }?.value }
        set {
            fields.removeAll { $0.name.equalsIgnoringCase(name) }
            if let newValue { append(name, newValue) }
        }
    }

    /// Adds a field at the end, beside others of its name.
    public mutating func append(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    /// Where the list begins.
    public var startIndex: Int { fields.startIndex }
    /// Where the list ends.
    public var endIndex: Int { fields.endIndex }
    /// The field at a position.
    public subscript(position: Int) -> Field { fields[position] }

    /// Reads the lines of a header section, without its status line. Lines without a colon are left out.
    init(parsing lines: some Sequence<Substring>) {
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { continue }
            append(String(line[..<colon]), line[line.index(after: colon)...].trimmingWhitespace())
        }
    }
}

extension String {
    fileprivate func equalsIgnoringCase(_ other: String) -> Bool {
        utf8.count == other.utf8.count && zip(utf8, other.utf8).allSatisfy { $0 == $1 || foldCase($0) == foldCase($1) }
    }
}

private func foldCase(_ byte: UInt8) -> UInt8 {
    (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
}

extension Substring {
    fileprivate func trimmingWhitespace() -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0.isNewline }
        return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
    }
}
