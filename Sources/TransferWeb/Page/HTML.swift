import TransferOutput

/// HTML in which all interpolated text is escaped, so that names of files and sessions can't become markup.
struct HTML: ExpressibleByStringInterpolation, Sendable {
    private(set) var markup: String

    init(stringLiteral value: String) { markup = value }

    init(stringInterpolation: Interpolation) { markup = stringInterpolation.markup }

    private init(markup: String) { self.markup = markup }

    struct Interpolation: StringInterpolationProtocol {
        fileprivate var markup = ""

        init(literalCapacity: Int, interpolationCount: Int) { markup.reserveCapacity(literalCapacity * 2) }

        mutating func appendLiteral(_ literal: String) { markup += literal }

        /// Inserts text, for content or for an attribute value in double quotes.
        mutating func appendInterpolation(_ text: String) { markup += HTML.escaped(text) }

        mutating func appendInterpolation(_ number: some BinaryInteger) { markup += "\(number)" }

        mutating func appendInterpolation(_ html: HTML) { markup += html.markup }

        mutating func appendInterpolation(_ html: HTML?) { markup += html?.markup ?? "" }
    }

    static func joined(_ parts: some Sequence<HTML>) -> HTML { HTML(markup: parts.map(\.markup).joined()) }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            // Control characters can reverse the direction of text, so that one name looks like another.
            case _ where scalar.isControl: escaped.unicodeScalars.append("\u{FFFD}")
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
