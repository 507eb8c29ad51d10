import ArgumentParser
import Foundation
import TransferOutput

/// A header field in a command-line argument, `Name: value` (RFC 9110, section 5).
struct HeaderField {
    let name: String
    let value: String

    private static let tokenCharacters = Set("!#$%&'*+-.^_`|~")

    /// Parses the value of an option. Removes the spaces and tabs around the header's value.
    ///
    /// - Throws: A `ValidationError` if the text is not a valid header field. The message does not contain the header's value, which may be
    ///   a secret.
    init(_ text: String, option: String) throws {
        guard ProcessArguments.isText(text) else {
            throw ValidationError("The value of \(option) is not UTF-8. Accounts can't store it.")
        }
        guard let colon = text.firstIndex(of: ":") else { throw ValidationError("\(option) takes 'Name: value'.") }
        name = String(text[..<colon])
        value = text[text.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        guard !name.isEmpty, name.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) || Self.tokenCharacters.contains($0) }) else {
            throw ValidationError("The name before the colon of \(option) is not a valid header name.")
        }
        guard !value.isEmpty else { throw ValidationError("The header \(name) of \(option) has no value. Write '\(name): value'.") }
        guard !value.unicodeScalars.contains(where: { $0.value < 0x20 && $0 != "\t" || $0.value == 0x7F }) else {
            throw ValidationError("The value of the header \(name) contains control characters. Remove them.")
        }
    }

    var suggestsSecret: Bool { SecretName.matches(name) }
}
