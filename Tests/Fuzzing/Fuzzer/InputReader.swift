/// Splits an input into values. After the end of the input, returns zeros and empty texts, so that every input is valid for every target.
struct InputReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ input: [UInt8]) {
        rest = input[...]
    }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func byte() -> UInt8 { rest.popFirst() ?? 0 }

    /// Reads any 64-bit number, from eight bytes in big-endian order.
    mutating func number() -> Int64 {
        Int64(bitPattern: (0..<8).reduce(UInt64(0)) { value, _ in value << 8 | UInt64(byte()) })
    }

    /// Reads the bytes before the next line feed, and skips the line feed.
    mutating func line() -> ArraySlice<UInt8> {
        let line = rest.prefix { $0 != UInt8(ascii: "\n") }
        rest = rest[line.endIndex...].dropFirst()
        return line
    }

    /// Reads a ``line()`` as text.
    mutating func text() -> String { String(decoding: line(), as: UTF8.self) }

    /// Reads `count` bytes, or fewer at the end of the input.
    mutating func bytes(_ count: Int) -> [UInt8] {
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }
}
