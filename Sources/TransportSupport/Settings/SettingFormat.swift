import TransferCore

/// The text format of a setting: parses and writes values.
package struct SettingFormat<Value>: Sendable {
    private let expected: String
    private let isSecret: Bool
    private let parse: @Sendable (String) -> Value?
    let text: @Sendable (Value) -> String

    /// - Parameters:
    ///   - expected: The text after "write" in an error, such as "true or false".
    ///   - isSecret: Whether errors must not show the text.
    ///   - parse: Returns nil for invalid text.
    ///   - text: Returns the text of a value.
    package init(
        _ expected: String, isSecret: Bool = false, parse: @escaping @Sendable (String) -> Value?,
        text: @escaping @Sendable (Value) -> String
    ) {
        self.expected = expected
        self.isSecret = isSecret
        self.parse = parse
        self.text = text
    }

    func value(of name: String, _ text: String) throws(TransferError) -> Value {
        guard let value = parse(text) else {
            throw .invalidEndpoint("The setting \(name) is \(isSecret ? "invalid" : text.debugDescription); write \(expected).")
        }
        return value
    }
}

extension SettingFormat<Bool> {
    package static var flag: Self {
        Self("true or false", parse: { $0 == "true" ? true : $0 == "false" ? false : nil }, text: { "\($0)" })
    }
}

extension SettingFormat<Int> {
    package static func number(_ range: ClosedRange<Int>) -> Self {
        Self("a number from \(range.lowerBound) to \(range.upperBound)", parse: { Int($0).flatMap { range.contains($0) ? $0 : nil } }) {
            "\($0)"
        }
    }
}

extension SettingFormat<Int64> {
    /// A number of bytes. The maximum, 64 PiB, prevents an overflow when the number is added to a position in a file.
    package static func bytes(from minimum: Int64) -> Self {
        let range = minimum...1 << 56
        return Self(
            "a number of bytes from \(minimum) to \(range.upperBound)", parse: { Int64($0).flatMap { range.contains($0) ? $0 : nil } }
        ) { "\($0)" }
    }
}

extension SettingFormat<Duration> {
    /// A number of seconds above 0, at most 1,000,000,000, which can have decimals.
    package static var seconds: Self {
        Self("a number of seconds above 0, at most 1000000000") { text in
            guard let seconds = Double(text), seconds > 0, seconds <= 1e9 else { return nil }
            let duration = Duration.seconds(seconds)
            return duration > .zero ? duration : nil
        } text: { duration in
            duration.components.attoseconds == 0 ? "\(duration.components.seconds)" : "\(duration / .seconds(1))"
        }
    }
}

extension SettingFormat<String> {
    package static var anyText: Self { Self("a text", parse: { $0 }, text: { $0 }) }

    /// Non-empty text without NUL characters.
    ///
    /// - Parameter expected: The text after "write" in an error.
    package static func text(_ expected: String) -> Self {
        Self(expected, parse: { $0.isEmpty || $0.utf8.contains(0) ? nil : $0 }, text: { $0 })
    }
}

extension SettingFormat<[String]> {
    /// A list, separated by commas or white space. It can be empty.
    package static var list: Self {
        Self("a list, separated by commas", parse: { $0.words }, text: { $0.joined(separator: ",") })
    }

    /// A list with one element per line, and at least one element. Ignores empty lines.
    ///
    /// - Parameters:
    ///   - expected: The text after "write" in an error.
    ///   - isValid: Checks an element.
    package static func lines(_ expected: String, where isValid: @escaping @Sendable (String) -> Bool = { _ in true }) -> Self {
        Self(expected) { text in
            let lines = text.split(whereSeparator: \.isNewline).map(String.init)
            return !lines.isEmpty && lines.allSatisfy { !$0.utf8.contains(0) && isValid($0) } ? lines : nil
        } text: {
            $0.joined(separator: "\n")
        }
    }
}

extension SettingFormat where Value: RawRepresentable<String> & CaseIterable & Sendable {
    /// One of the words of an enumeration.
    package static var choice: Self {
        Self(
            "one of \(Value.allCases.map(\.rawValue).sorted().joined(separator: ", "))", parse: { Value(rawValue: $0) }, text: \.rawValue)
    }
}

extension String {
    /// The elements of a list that is separated by commas or white space.
    package var words: [String] { split(whereSeparator: { $0 == "," || $0.isWhitespace }).map(String.init) }
}
