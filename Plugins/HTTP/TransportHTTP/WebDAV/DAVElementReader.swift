/// An XML element in a `PROPFIND` response (RFC 4918, section 14). Each element that matters for a listing has its own case.
enum DAVElement: String, CaseIterable, Sendable {
    case multistatus, response, href, propstat, prop, resourcetype, collection, getcontentlength, status
    /// Any other element, for example one in another namespace.
    case other

    /// Whether the text of the element matters.
    var hasText: Bool { [.href, .getcontentlength, .status].contains(self) }

    fileprivate static let names: [[UInt8]: DAVElement] = Dictionary(
        uniqueKeysWithValues: allCases.filter { $0 != .other }.map { (Array($0.rawValue.utf8), $0) })
}

/// Reads the elements of a WebDAV response from an XML document while the document arrives (XML 1.0, and Namespaces in XML 1.0).
///
/// Rejects document type declarations, so a document can define no entities and refer to no other document. Accepts only UTF-8. The reader
/// uses a limited amount of memory, regardless of the document.
struct DAVElementReader {
    enum Event: Hashable, Sendable {
        case start(DAVElement)
        /// The end, with the element's own text. The text is empty unless ``DAVElement/hasText``.
        case end(DAVElement, text: [UInt8])
    }

    /// The reason why a document is rejected, as the end of a sentence.
    struct Malformed: Error, Hashable {
        let reason: String

        init(_ reason: String) { self.reason = reason }
    }

    private enum State {
        case text
        /// After `&`.
        case reference
        /// Within a tag. The associated value is the quotation mark of the current attribute value.
        case tag(quote: UInt8?)
        /// The associated value of this case and of the next two cases shows how much of the closing delimiter was read: `-->`, `?>` or `]]>`.
        case comment(dashes: Int)
        case instruction(mayEnd: Bool)
        case characterData(brackets: Int)
    }

    private struct OpenElement {
        let name: [UInt8]
        let element: DAVElement
        /// The number of namespaces that were declared outside this element.
        let outerNamespaces: Int
        var text: [UInt8] = []
    }

    /// The maximum number of bytes of a tag, and of an element's text. An `href` has at most 12,288 bytes: PATH_MAX (limits.h) with each
    /// byte percent-encoded.
    private static let maximumBytes = 32 * 1024
    private static let maximumDepth = 64
    /// The maximum number of namespaces in scope.
    private static let maximumNamespaces = 256
    /// The maximum number of bytes between the `&` and the `;` of a reference.
    private static let maximumReference = 10
    private static let davNamespace = Array("DAV:".utf8)
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private var state = State.text
    /// The bytes of the current tag, instruction or reference.
    private var markup: [UInt8] = []
    private var open: [OpenElement] = []
    private var namespaces: [(prefix: [UInt8], name: [UInt8])] = []
    private var hasRoot = false
    /// The bytes of a byte order mark that were read so far.
    private var start: [UInt8] = []
    /// Whether at most a byte order mark was read. An XML declaration is valid only here.
    private var isAtStart = true

    /// Reads the next bytes of the document, and returns the elements that start or end in them.
    ///
    /// - Throws: ``Malformed``. Don't call this method again after an error.
    mutating func read(_ bytes: some Sequence<UInt8>) throws(Malformed) -> [Event] {
        var events: [Event] = []
        for byte in bytes { try read(byte, &events) }
        return events
    }

    /// Checks that the document is complete.
    ///
    /// - Throws: ``Malformed`` if it is not.
    func finish() throws(Malformed) {
        guard case .text = state, hasRoot, open.isEmpty else { throw Malformed("ends early") }
    }

    private mutating func read(_ byte: UInt8, _ events: inout [Event]) throws(Malformed) {
        guard byte >= 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D else { throw Malformed("contains a control character") }
        switch state {
        case .text: try readText(byte)
        case .reference: try readReference(byte)
        case .tag(let quote): try readTag(byte, quote, &events)
        case .comment(let dashes):
            state = byte == UInt8(ascii: ">") && dashes >= 2 ? .text : .comment(dashes: byte == UInt8(ascii: "-") ? dashes + 1 : 0)
        case .instruction(let mayEnd): try readInstruction(byte, mayEnd)
        case .characterData(let brackets): try readCharacterData(byte, brackets)
        }
    }

    private mutating func readText(_ byte: UInt8) throws(Malformed) {
        if isAtStart, start.count < Self.byteOrderMark.count, byte == Self.byteOrderMark[start.count] {
            start.append(byte)
            return
        }
        guard start.isEmpty || start == Self.byteOrderMark else { throw Malformed("is not XML") }
        switch byte {
        case UInt8(ascii: "<"):
            markup = []
            state = .tag(quote: nil)
        case UInt8(ascii: "&"):
            markup = []
            state = .reference
        default:
            isAtStart = false
            try append([byte])
        }
    }

    /// Adds text to the innermost element.
    private mutating func append(_ text: some Collection<UInt8>) throws(Malformed) {
        guard let last = open.indices.last else {
            guard text.allSatisfy(Self.isSpace) else { throw Malformed("is not XML") }
            return
        }
        guard open[last].element.hasText else { return }
        guard open[last].text.count + text.count <= Self.maximumBytes else { throw Malformed("has an element with too much text") }
        open[last].text += text
    }

    private mutating func readReference(_ byte: UInt8) throws(Malformed) {
        guard byte == UInt8(ascii: ";") else {
            guard markup.count < Self.maximumReference else { throw Malformed("has an invalid reference") }
            return markup.append(byte)
        }
        guard !open.isEmpty, let text = Self.text(ofReference: markup) else { throw Malformed("has an invalid reference") }
        try append(text)
        state = .text
    }

    /// The text of a reference to a character or to a predefined entity (XML 1.0, sections 4.1 and 4.6); nil if it is invalid.
    private static func text(ofReference name: [UInt8]) -> [UInt8]? {
        switch String(decoding: name, as: UTF8.self) {
        case "lt": return [UInt8(ascii: "<")]
        case "gt": return [UInt8(ascii: ">")]
        case "amp": return [UInt8(ascii: "&")]
        case "quot": return [UInt8(ascii: "\"")]
        case "apos": return [UInt8(ascii: "'")]
        case let text:
            guard text.hasPrefix("#") else { return nil }
            let isHexadecimal = text.hasPrefix("#x")
            let digits = text.dropFirst(isHexadecimal ? 2 : 1)
            // `UInt32.init` also accepts a sign.
            guard digits.utf8.first.map({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }) ?? false,
                let scalar = UInt32(digits, radix: isHexadecimal ? 16 : 10).flatMap(Unicode.Scalar.init),
                scalar.value >= 0x20 || [0x09, 0x0A, 0x0D].contains(scalar.value), scalar.value & 0xFFFE != 0xFFFE
            else { return nil }
            return Array(String(Character(scalar)).utf8)
        }
    }

    private mutating func readTag(_ byte: UInt8, _ quote: UInt8?, _ events: inout [Event]) throws(Malformed) {
        if byte == UInt8(ascii: "<") { throw Malformed("has an invalid tag") }
        if byte == UInt8(ascii: ">"), quote == nil {
            state = .text
            isAtStart = false
            return try readTag(markup, &events)
        }
        guard markup.count < Self.maximumBytes else { throw Malformed("has a tag that is too long") }
        markup.append(byte)
        if markup[0] == UInt8(ascii: "?") {
            state = .instruction(mayEnd: false)
        } else if markup[0] == UInt8(ascii: "!") {
            try readDeclaration()
        } else if let quote {
            if byte == quote { state = .tag(quote: nil) }
        } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
            state = .tag(quote: byte)
        }
    }

    /// Reads the start of markup that begins with `<!`. Only comments and character data are accepted, not a document type.
    private mutating func readDeclaration() throws(Malformed) {
        let (comment, characterData) = (Array("!--".utf8), Array("![CDATA[".utf8))
        if markup == comment {
            state = .comment(dashes: 0)
            isAtStart = false
        } else if markup == characterData, !open.isEmpty {
            state = .characterData(brackets: 0)
        } else if !comment.starts(with: markup), !characterData.starts(with: markup) {
            throw Malformed("has a document type")
        }
    }

    /// Reads a processing instruction or the XML declaration. Rejects a declaration of another encoding than UTF-8.
    private mutating func readInstruction(_ byte: UInt8, _ mayEnd: Bool) throws(Malformed) {
        guard byte == UInt8(ascii: ">"), mayEnd else {
            state = .instruction(mayEnd: byte == UInt8(ascii: "?"))
            // Only the beginning matters: an XML declaration is short.
            if markup.count < 256 { markup.append(byte) }
            return
        }
        state = .text
        let wasAtStart = isAtStart
        isAtStart = false
        let content = markup.dropFirst().dropLast()
        guard content.prefix(while: { !Self.isSpace($0) }).elementsEqual("xml".utf8) else { return }
        guard wasAtStart else { throw Malformed("has a declaration after its beginning") }
        let encoding = try Self.attributes(content.dropFirst(3)).first { $0.name.elementsEqual("encoding".utf8) }?.value
        guard let encoding else { return }
        guard ["utf-8", "us-ascii"].contains(String(decoding: encoding, as: UTF8.self).lowercased()) else {
            throw Malformed("is not in UTF-8")
        }
    }

    private mutating func readCharacterData(_ byte: UInt8, _ brackets: Int) throws(Malformed) {
        if byte == UInt8(ascii: "]") {
            // After a third bracket, the first one is text, because `]]>` has only two.
            if brackets == 2 { try append([byte]) }
            state = .characterData(brackets: min(2, brackets + 1))
        } else if byte == UInt8(ascii: ">"), brackets == 2 {
            state = .text
        } else {
            try append([UInt8](repeating: UInt8(ascii: "]"), count: brackets) + [byte])
            state = .characterData(brackets: 0)
        }
    }

    // MARK: Tags

    private mutating func readTag(_ tag: [UInt8], _ events: inout [Event]) throws(Malformed) {
        guard tag.first == UInt8(ascii: "/") else { return try begin(tag[...], &events) }
        let name = tag.dropFirst().prefix { !Self.isSpace($0) }
        guard let element = open.popLast(), name.elementsEqual(element.name),
            tag.dropFirst(1 + name.count).allSatisfy(Self.isSpace)
        else { throw Malformed("has an end tag without its start tag") }
        end(element, &events)
    }

    private mutating func begin(_ tag: ArraySlice<UInt8>, _ events: inout [Event]) throws(Malformed) {
        let isEmpty = tag.last == UInt8(ascii: "/")
        let content = isEmpty ? tag.dropLast() : tag
        let name = content.prefix { !Self.isSpace($0) }
        guard Self.isName(name) else { throw Malformed("has an invalid tag") }
        guard !open.isEmpty || !hasRoot else { throw Malformed("has more than one root element") }
        guard open.count < Self.maximumDepth else { throw Malformed("is nested too deeply") }
        hasRoot = true
        let outerNamespaces = namespaces.count
        for attribute in try Self.attributes(content.dropFirst(name.count)) {
            let value = try Self.resolved(attribute.value)
            if attribute.name.elementsEqual("xmlns".utf8) {
                namespaces.append(([], value))
            } else if attribute.name.starts(with: "xmlns:".utf8) {
                namespaces.append((Array(attribute.name.dropFirst(6)), value))
            }
        }
        guard namespaces.count <= Self.maximumNamespaces else { throw Malformed("has too many namespaces") }
        let element = OpenElement(name: Array(name), element: try element(name), outerNamespaces: outerNamespaces)
        events.append(.start(element.element))
        if isEmpty { end(element, &events) } else { open.append(element) }
    }

    private mutating func end(_ element: OpenElement, _ events: inout [Event]) {
        namespaces.removeLast(namespaces.count - element.outerNamespaces)
        events.append(.end(element.element, text: element.text))
    }

    /// Returns the element with a name, in the namespaces that are in scope.
    private func element(_ name: ArraySlice<UInt8>) throws(Malformed) -> DAVElement {
        let parts = name.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        let prefix = parts.count == 2 ? parts[0] : []
        guard let namespace = namespaces.last(where: { $0.prefix.elementsEqual(prefix) })?.name else {
            guard prefix.isEmpty else { throw Malformed("has an undeclared namespace") }
            return .other
        }
        return namespace == Self.davNamespace ? DAVElement.names[Array(parts[parts.count - 1])] ?? .other : .other
    }

    /// Parses the attributes of a tag, with white space before each of them. The values can contain references.
    private static func attributes(
        _ text: ArraySlice<UInt8>
    ) throws(Malformed) -> [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)] {
        var found: [(name: ArraySlice<UInt8>, value: ArraySlice<UInt8>)] = []
        var rest = text
        while true {
            let spaced = rest.drop(while: isSpace)
            guard let first = spaced.first else { return found }
            let name = spaced.prefix { !isSpace($0) && $0 != UInt8(ascii: "=") }
            let afterName = spaced.dropFirst(name.count).drop(while: isSpace)
            let quoted = afterName.dropFirst().drop(while: isSpace)
            guard first != UInt8(ascii: "="), spaced.count < rest.count, isName(name), afterName.first == UInt8(ascii: "="),
                let quote = quoted.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"),
                let end = quoted.dropFirst().firstIndex(of: quote)
            else { throw Malformed("has an invalid attribute") }
            guard !found.contains(where: { $0.name.elementsEqual(name) }), found.count < maximumNamespaces else {
                throw Malformed("has an attribute twice, or too many attributes")
            }
            found.append((name, quoted[(quoted.startIndex + 1)..<end]))
            rest = quoted[(end + 1)...]
        }
    }

    /// Replaces the references in the value of an attribute.
    private static func resolved(_ value: ArraySlice<UInt8>) throws(Malformed) -> [UInt8] {
        var text: [UInt8] = []
        var rest = value
        while let start = rest.firstIndex(of: UInt8(ascii: "&")) {
            text += rest[..<start]
            rest = rest[(start + 1)...]
            guard let end = rest.firstIndex(of: UInt8(ascii: ";")), end - start <= maximumReference + 1,
                let replacement = Self.text(ofReference: Array(rest[..<end]))
            else { throw Malformed("has an invalid reference") }
            text += replacement
            rest = rest[(end + 1)...]
        }
        return text + rest
    }

    static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }

    /// Whether the bytes are the name of an element or an attribute. Accepts every character outside of ASCII.
    private static func isName(_ name: ArraySlice<UInt8>) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool {
            (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte) || (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
                || byte == UInt8(ascii: "_") || byte == UInt8(ascii: ":") || byte >= 0x80
        }
        return name.first.map(isLetter) ?? false
            && name.allSatisfy { isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == 0x2D || $0 == 0x2E }
    }
}
