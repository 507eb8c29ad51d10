/// An ordered list of header fields. Names are case-insensitive (RFC 9110, section 5.1).
public struct HTTPHeaders: Sendable, RandomAccessCollection, ExpressibleByDictionaryLiteral {
    /// One field.
    public struct Field: Hashable, Sendable {
        /// The name in its original case.
        public var name: String
        /// The value without surrounding white space.
        public var value: String
    }

    private var fields: [Field] = []

    /// Creates an empty list.
    public init() {}

    /// Creates a list from names and values. A name can occur more than once.
    public init(dictionaryLiteral elements: (String, String)...) {
        fields = elements.map { Field(name: $0.0, value: $0.1) }
    }

    /// The first value of a header. Setting a value replaces all fields of that name; setting nil removes them.
    public subscript(name: String) -> String? {
        get { fields.first { $0.name.equalsIgnoringCase(name) }?.value }
        set {
            fields.removeAll { $0.name.equalsIgnoringCase(name) }
            if let newValue { append(name, newValue) }
        }
    }

    /// Appends a field, and keeps existing fields of the same name.
    public mutating func append(_ name: String, _ value: String) {
        fields.append(Field(name: name, value: value))
    }

    /// The position of the first field.
    public var startIndex: Int { fields.startIndex }
    /// The position after the last field.
    public var endIndex: Int { fields.endIndex }
    /// The field at a position.
    public subscript(position: Int) -> Field { fields[position] }

    /// Parses the lines of a header section, without its status line. Lines without a colon are skipped.
    init(parsing lines: some Sequence<ArraySlice<UInt8>>) {
        for line in lines {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let value = line[(colon + 1)...].withoutSpaceAround
            append(String(decoding: line[..<colon], as: UTF8.self), String(decoding: value, as: UTF8.self))
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

extension ArraySlice<UInt8> {
    fileprivate var withoutSpaceAround: ArraySlice {
        func isSpace(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
        guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else { return [] }
        return self[first...last]
    }
}
