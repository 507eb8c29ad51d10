import ArgumentParser

/// Reads the values of a repeatable option that takes `NAME=VALUE`.
enum NamedValues {
    /// - Throws: A `ValidationError` for a text without a name, and for a repeated name.
    static func read(_ texts: [String], of option: String) throws -> [String: String] {
        var values: [String: String] = [:]
        for text in texts {
            guard ProcessArguments.isText(text), let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw ValidationError("\(option) takes NAME=VALUE.")
            }
            let name = String(text[..<equals])
            guard values.updateValue(String(text[text.index(after: equals)...]), forKey: name) == nil else {
                throw ValidationError("\(option) gives \"\(name)\" twice. Remove one of the two.")
            }
        }
        return values
    }
}
