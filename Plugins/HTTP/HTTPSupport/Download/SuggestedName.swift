import CurlEngine
import SystemPackage

/// The file name that a server suggests (`Content-Disposition`, RFC 6266), reduced to one safe path component.
///
/// The name is the part after the last path separator of any operating system, without control characters. It is not hidden, does not look like an
/// option or a home folder to a shell, and is no longer than file systems allow.
struct SuggestedName {
    /// The name as a regular path component, never empty, `.` or `..`.
    let component: FilePath.Component

    /// The maximum length of a name in bytes, NAME_MAX (limits.h).
    private static let maximumLength = 255
    /// The maximum length in bytes of an extension that is kept, including the dot.
    private static let maximumExtensionLength = 16

    /// - Returns: nil if the server suggests no name, or if no safe name remains.
    init?(_ headers: HTTPHeaders) {
        guard let value = headers["Content-Disposition"] else { return nil }
        let parameters = HeaderParameters(of: value)
        // The parameter with a character set takes precedence (section 4.3).
        let names = [parameters["filename*"].flatMap(Self.decoded), parameters["filename"]]
        guard let component = names.lazy.compactMap({ $0.flatMap(Self.reduced) }).first else { return nil }
        self.component = component
    }

    /// Reduces a name to one safe path component; nil if nothing safe remains.
    private static func reduced(_ name: String) -> FilePath.Component? {
        // Compares scalars, because a separator and a combining mark after it form one character.
        let scalars = name.unicodeScalars
        let separator = scalars.lastIndex { $0 == "/" || $0 == "\\" }
        let last = separator.map { scalars[scalars.index(after: $0)...] } ?? scalars[...]
        let harmless = last.filter { scalar in
            switch scalar.properties.generalCategory {
            // Direction controls can make `txt.exe` appear as `exe.txt`.
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
            default: true
            }
        }
        let start = harmless.firstIndex { !".-~ ".unicodeScalars.contains($0) } ?? harmless.endIndex
        let end = harmless.lastIndex { $0 != "." && $0 != " " }.map { harmless.index(after: $0) } ?? start
        guard start < end else { return nil }
        let text = String(String.UnicodeScalarView(shortened(Array(harmless[start..<end]))))
        return FilePath.Component(text).flatMap { $0.kind == .regular ? $0 : nil }
    }

    /// Shortens a text to the maximum length of a name, but keeps the extension.
    private static func shortened(_ text: [Unicode.Scalar]) -> [Unicode.Scalar] {
        func length(_ part: some Collection<Unicode.Scalar>) -> Int { part.reduce(0) { $0 + UTF8.width($1) } }
        let ending = text.lastIndex(of: ".").map { text[$0...] }.flatMap { length($0) <= maximumExtensionLength ? $0 : nil } ?? []
        var stem = text.dropLast(ending.count)
        var excess = length(stem) - (maximumLength - length(ending))
        while excess > 0, let last = stem.popLast() { excess -= UTF8.width(last) }
        return Array(stem + ending)
    }

    /// Decodes the value of a parameter with a star: character set, language, and percent-encoded bytes (RFC 8187, section 3.2).
    private static func decoded(_ value: String) -> String? {
        let parts = value.utf8.split(separator: UInt8(ascii: "'"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let coded = Array(parts[2])
        var bytes: [UInt8] = []
        var index = 0
        while index < coded.count {
            if coded[index] == UInt8(ascii: "%") {
                guard index + 2 < coded.count, let high = Character(Unicode.Scalar(coded[index + 1])).hexDigitValue,
                    let low = Character(Unicode.Scalar(coded[index + 2])).hexDigitValue
                else { return nil }
                bytes.append(UInt8(high << 4 | low))
                index += 3
            } else {
                bytes.append(coded[index])
                index += 1
            }
        }
        switch String(decoding: parts[0], as: UTF8.self).lowercased() {
        case "utf-8": return String(validating: bytes, as: UTF8.self)
        case "iso-8859-1": return String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
        default: return nil
        }
    }
}

/// The parameters in a header's value, after its first `;` (RFC 9110, section 5.6.6). Names are case-insensitive, and the first value of each name
/// applies. Parses scalars, because a delimiter and a combining mark after it form one character.
private struct HeaderParameters {
    private var values: [String: String] = [:]

    init(of value: String) {
        var rest = value.unicodeScalars[...]
        while let semicolon = rest.firstIndex(of: ";") {
            rest = rest[rest.index(after: semicolon)...].drop { $0 == " " || $0 == "\t" }
            let name = rest.prefix { $0 != "=" && $0 != ";" }
            rest = rest[name.endIndex...]
            guard rest.first == "=" else { continue }
            rest = rest.dropFirst().drop { $0 == " " || $0 == "\t" }
            let text = rest.first == "\"" ? Self.takeQuoted(&rest) : Self.takeToken(&rest)
            let key = String(String.UnicodeScalarView(name.filter { $0 != " " && $0 != "\t" })).lowercased()
            if values[key] == nil { values[key] = text }
        }
    }

    subscript(name: String) -> String? { values[name] }

    private static func takeToken(_ rest: inout Substring.UnicodeScalarView) -> String {
        let token = rest.prefix { $0 != ";" }
        rest = rest[token.endIndex...]
        return String(String.UnicodeScalarView(token))
    }

    /// Parses a quoted string. A backslash escapes a quote or another backslash (section 5.6.4). A backslash before any other character is kept,
    /// because servers use it as a path separator.
    private static func takeQuoted(_ rest: inout Substring.UnicodeScalarView) -> String {
        rest.removeFirst()
        var text = String.UnicodeScalarView()
        while let scalar = rest.popFirst(), scalar != "\"" {
            let isEscaped = scalar == "\\" && (rest.first == "\"" || rest.first == "\\")
            text.append(isEscaped ? rest.removeFirst() : scalar)
        }
        return String(text)
    }
}
