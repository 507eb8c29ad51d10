/// Reads the members of a folder from the response to a `PROPFIND` request (RFC 4918, sections 9.1 and 13) as the response arrives.
struct MultistatusReader {
    /// One resource in the response.
    struct Member: Hashable, Sendable {
        /// The URL or the path of the resource, as the server sent it.
        var href: [UInt8]
        /// Whether the resource is a folder; nil if the server does not report this.
        var isFolder: Bool?
        /// The size in bytes; nil if the server does not report a number from 0 to 2^63 - 1.
        var size: Int64?
        /// The status of the whole resource; nil if the server reports only the status of its properties.
        var status: Int?

        var isGone: Bool { status == 404 || status == 410 }
    }

    // The paths of the elements that matter. A path is necessary, because properties can contain elements of the same names.
    private static let response: [DAVElement] = [.multistatus, .response]
    private static let href = response + [.href]
    private static let responseStatus = response + [.status]
    private static let propstat = response + [.propstat]
    private static let propstatStatus = propstat + [.status]
    private static let resourceType = propstat + [.prop, .resourcetype]
    private static let collection = resourceType + [.collection]
    private static let contentLength = propstat + [.prop, .getcontentlength]

    private var reader = DAVElementReader()
    private var path: [DAVElement] = []
    /// The properties of the current `response` element; nil until the first of them is known.
    private var member: Member?
    /// The status of the current `response` element as a whole.
    private var status: Int?
    /// The properties in the current `propstat` element, and its status. The properties are ignored if the status is not a success.
    private var found: (hasType: Bool, isFolder: Bool, size: Int64?, status: Int?) = (false, false, nil, nil)

    /// Reads the next bytes, and returns the members that are complete.
    ///
    /// - Throws: ``DAVElementReader/Malformed``. Don't call this method again after an error.
    mutating func read(_ bytes: some Sequence<UInt8>) throws(DAVElementReader.Malformed) -> [Member] {
        var members: [Member] = []
        for event in try reader.read(bytes) {
            switch event {
            case .start(let element):
                guard !path.isEmpty || element == .multistatus else { throw .init("is not a WebDAV response") }
                path.append(element)
                begin()
            case .end(let element, let text):
                try end(element, text, &members)
                path.removeLast()
            }
        }
        return members
    }

    func finish() throws(DAVElementReader.Malformed) { try reader.finish() }

    private mutating func begin() {
        switch path.last {
        case .response? where path == Self.response: (member, status) = (nil, nil)
        case .propstat? where path == Self.propstat: found = (false, false, nil, nil)
        case .resourcetype? where path == Self.resourceType: found.hasType = true
        case .collection? where path == Self.collection: found.isFolder = true
        default: break
        }
    }

    private mutating func end(_ element: DAVElement, _ text: [UInt8], _ members: inout [Member]) throws(DAVElementReader.Malformed) {
        switch element {
        case .href where path == Self.href:
            let href = text.trimmed
            // Several URLs in one element have no properties (RFC 4918, section 14.24), so they can't be listed.
            guard member?.href.isEmpty ?? true, !href.isEmpty else { throw .init("has an entry with several URLs, or with an empty one") }
            member = Member(href: href, isFolder: member?.isFolder, size: member?.size)
        case .status where path == Self.responseStatus: status = Self.status(text)
        case .status where path == Self.propstatStatus: found.status = Self.status(text)
        case .getcontentlength where path == Self.contentLength:
            found.size = Int64(String(decoding: text.trimmed, as: UTF8.self)).flatMap { $0 >= 0 ? $0 : nil }
        case .propstat where path == Self.propstat && (200..<300).contains(found.status ?? 200):
            var changed = member ?? Member(href: [])
            if found.hasType { changed.isFolder = found.isFolder }
            changed.size = found.size ?? changed.size
            member = changed
        case .response where path == Self.response:
            guard var complete = member, !complete.href.isEmpty else { throw .init("has an entry without a URL") }
            complete.status = status
            members.append(complete)
        default: break
        }
    }

    /// The code in a status line (RFC 9112, section 4); nil if it is invalid.
    private static func status(_ line: [UInt8]) -> Int? {
        line.split(whereSeparator: DAVElementReader.isSpace).dropFirst().first.flatMap { Int(String(decoding: $0, as: UTF8.self)) }
    }
}

extension [UInt8] {
    fileprivate var trimmed: [UInt8] {
        guard let first = firstIndex(where: { !DAVElementReader.isSpace($0) }),
            let last = lastIndex(where: { !DAVElementReader.isSpace($0) })
        else { return [] }
        return Array(self[first...last])
    }
}
