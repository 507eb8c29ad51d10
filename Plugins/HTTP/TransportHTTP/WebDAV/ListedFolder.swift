/// A folder on a WebDAV server. Converts the URLs in its listing to names.
///
/// The transport never uses a name as a URL, so a listing can't refer to other servers or folders.
struct ListedFolder {
    /// The relation between a URL in a listing and the folder.
    enum Place: Hashable {
        case itself
        /// A member of the folder, whose name can contain any bytes. `endsInSlash` suggests that the member is a folder.
        case member(name: [UInt8], endsInSlash: Bool)
        /// Another server, or a path that is not directly in the folder.
        case outside
    }

    private let host: [UInt8]
    /// The decoded components of the folder's path.
    private let components: [[UInt8]]

    /// - Parameter url: The absolute URL of the folder, as it was requested.
    init?(url: String) {
        let text = Array(url.utf8.prefix { $0 != UInt8(ascii: "?") })
        guard let (host, path) = Self.split(text[...]) else { return nil }
        self.host = host
        components = Self.components(path)
    }

    /// Returns whether a URL or path from the folder's listing names the folder itself, one of its members, or neither (RFC 4918, section 8.3).
    ///
    /// The scheme and the port of a URL can differ from the request's: a proxy can add TLS. Accepts both encoded and unencoded characters.
    func place(of href: [UInt8]) -> Place {
        let path: ArraySlice<UInt8>
        if href.first == UInt8(ascii: "/") {
            path = href[...]
        } else if let (host, rest) = Self.split(href[...]) {
            guard host == self.host else { return .outside }
            path = rest
        } else {
            return relative(href)
        }
        let found = Self.components(path)
        guard found.starts(with: components), found.count <= components.count + 1 else { return .outside }
        return place(of: found.dropFirst(components.count), path)
    }

    /// Returns the same as ``place(of:)`` for a path relative to the folder. Servers should not send such paths, but some do.
    private func relative(_ href: [UInt8]) -> Place {
        var path = href[...]
        while path.starts(with: "./".utf8) { path = path.dropFirst(2) }
        // A colon in the first component follows a scheme (RFC 3986, section 4.2).
        guard !path.prefix(while: { $0 != UInt8(ascii: "/") }).contains(UInt8(ascii: ":")) else { return .outside }
        let found = Self.components(path)
        return found.count <= 1 ? place(of: found[...], path) : .outside
    }

    private func place(of rest: ArraySlice<[UInt8]>, _ path: ArraySlice<UInt8>) -> Place {
        guard let name = rest.first else { return .itself }
        return .member(name: name, endsInSlash: path.last == UInt8(ascii: "/"))
    }

    /// Splits a URL into its host in lower case, without the port, and its path; nil unless it is an `http` or `https` URL without a user.
    private static func split(_ url: ArraySlice<UInt8>) -> (host: [UInt8], path: ArraySlice<UInt8>)? {
        for scheme in ["http://", "https://"] where url.prefix(scheme.utf8.count).map(lowercased).elementsEqual(scheme.utf8) {
            let rest = url.dropFirst(scheme.utf8.count)
            let authority = rest.prefix { $0 != UInt8(ascii: "/") }
            guard !authority.contains(UInt8(ascii: "@")) else { return nil }
            // The colons within the brackets of an IPv6 address do not begin a port.
            let afterBracket = authority.lastIndex(of: UInt8(ascii: "]")) ?? authority.startIndex
            let end = authority[afterBracket...].firstIndex(of: UInt8(ascii: ":")) ?? authority.endIndex
            return (authority[..<end].map(lowercased), rest[authority.endIndex...])
        }
        return nil
    }

    /// The decoded components of a path, without empty ones. An invalid escape sequence is kept: some servers do not encode percent signs.
    private static func components(_ path: ArraySlice<UInt8>) -> [[UInt8]] {
        path.split(separator: UInt8(ascii: "/")).map { component in
            guard component.contains(UInt8(ascii: "%")) else { return Array(component) }
            var decoded: [UInt8] = []
            var rest = component
            while let byte = rest.popFirst() {
                if byte == UInt8(ascii: "%"), let value = value(ofDigits: rest.prefix(2)) {
                    decoded.append(value)
                    rest = rest.dropFirst(2)
                } else {
                    decoded.append(byte)
                }
            }
            return decoded
        }
    }

    private static func value(ofDigits digits: ArraySlice<UInt8>) -> UInt8? {
        let values = digits.compactMap { Character(UnicodeScalar($0)).hexDigitValue }
        return values.count == 2 ? UInt8(values[0] << 4 | values[1]) : nil
    }

    private static func lowercased(_ byte: UInt8) -> UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
    }
}
