/// The parser for structured header fields (RFC 9651, section 4.2).
struct StructuredFields {
    /// A value of a field. Values of types that this module does not use are ``other``.
    enum Value: Hashable, Sendable {
        case integer(Int64)
        case boolean(Bool)
        case other
    }

    private var rest: Substring.UTF8View

    private init(_ text: String) {
        rest = text.drop { $0 == " " }.utf8
    }

    /// Parses a dictionary; nil if the text is not a dictionary. If a key occurs more than once, its last value applies.
    static func dictionary(_ text: String) -> [String: Value]? {
        var parser = Self(text)
        var values: [String: Value] = [:]
        while !parser.rest.isEmpty {
            guard let key = parser.key() else { return nil }
            if parser.skip("=") {
                guard let value = parser.peek == UInt8(ascii: "(") ? parser.innerList() : parser.bareItem() else { return nil }
                values[key] = value
            } else {
                values[key] = .boolean(true)
            }
            guard parser.skipParameters() else { return nil }
            parser.skipSpace()
            if parser.rest.isEmpty { return values }
            guard parser.skip(",") else { return nil }
            parser.skipSpace()
            // A dictionary must not end with a comma.
            if parser.rest.isEmpty { return nil }
        }
        return values
    }

    /// Parses an item; nil if the text is not an item.
    static func item(_ text: String) -> Value? {
        var parser = Self(text)
        guard let value = parser.bareItem(), parser.skipParameters() else { return nil }
        parser.skipSpace()
        return parser.rest.isEmpty ? value : nil
    }

    private var peek: UInt8? { rest.first }

    private mutating func skip(_ character: Character) -> Bool {
        guard let byte = character.asciiValue, peek == byte else { return false }
        rest.removeFirst()
        return true
    }

    private mutating func skipSpace() { rest = rest.drop { $0 == 0x20 || $0 == 0x09 } }

    private mutating func take(while isMember: (UInt8) -> Bool) -> String {
        let taken = rest.prefix(while: isMember)
        rest = rest[taken.endIndex...]
        return String(decoding: taken, as: UTF8.self)
    }

    private mutating func key() -> String? {
        guard let first = peek, first.isLowercase || first == UInt8(ascii: "*") else { return nil }
        return take { $0.isLowercase || $0.isDigit || "_-.*".utf8.contains($0) }
    }

    /// Parses an inner list, whose values this module does not use.
    private mutating func innerList() -> Value? {
        guard skip("(") else { return nil }
        while true {
            rest = rest.drop { $0 == 0x20 }
            if skip(")") { return .other }
            guard bareItem() != nil, skipParameters(), peek == 0x20 || peek == UInt8(ascii: ")") else { return nil }
        }
    }

    private mutating func skipParameters() -> Bool {
        while skip(";") {
            rest = rest.drop { $0 == 0x20 }
            guard key() != nil else { return false }
            if skip("="), bareItem() == nil { return false }
        }
        return true
    }

    private mutating func bareItem() -> Value? {
        guard let first = peek else { return nil }
        switch first {
        case UInt8(ascii: "?"): return boolean()
        case UInt8(ascii: "\""): return string()
        case UInt8(ascii: ":"):
            rest.removeFirst()
            _ = take { $0.isLetter || $0.isDigit || "+/=".utf8.contains($0) }
            return skip(":") ? .other : nil
        case UInt8(ascii: "@"):
            rest.removeFirst()
            return if case .integer? = number() { .other } else { nil }
        case UInt8(ascii: "%"):
            rest.removeFirst()
            return string()
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return number()
        case _ where first.isLetter || first == UInt8(ascii: "*"):
            _ = take { $0.isLetter || $0.isDigit || "!#$%&'*+-.^_`|~:/".utf8.contains($0) }
            return .other
        default: return nil
        }
    }

    private mutating func boolean() -> Value? {
        rest.removeFirst()
        if skip("1") { return .boolean(true) }
        return skip("0") ? .boolean(false) : nil
    }

    private mutating func string() -> Value? {
        guard skip("\"") else { return nil }
        while let byte = rest.popFirst() {
            switch byte {
            case UInt8(ascii: "\""): return .other
            case UInt8(ascii: "\\"):
                guard let escaped = rest.popFirst(), escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else { return nil }
            case 0x20...0x7E: continue
            default: return nil
            }
        }
        return nil
    }

    /// Parses an integer of at most 15 digits, or a decimal of at most 12 digits before and 3 digits after the point.
    private mutating func number() -> Value? {
        let isNegative = skip("-")
        let digits = take(while: \.isDigit)
        guard !digits.isEmpty else { return nil }
        if skip(".") {
            let fraction = take(while: \.isDigit)
            return digits.utf8.count <= 12 && (1...3).contains(fraction.utf8.count) ? .other : nil
        }
        // A number of at most 15 digits fits in 64 bits.
        guard digits.utf8.count <= 15, let number = Int64(digits) else { return nil }
        return .integer(isNegative ? -number : number)
    }
}

extension UInt8 {
    fileprivate var isLowercase: Bool { (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) }
    fileprivate var isLetter: Bool { isLowercase || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) }
    fileprivate var isDigit: Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(self) }
}
