import Foundation
import HTTPSupport
import TransferCore

/// The parts of an endpoint's address.
struct EndpointAddress {
    /// How files are uploaded.
    enum Upload: String {
        case put
        case form
        /// The address is for downloads only.
        case none = "get"
    }

    let upload: Upload
    let origin: Origin
    let userName: String?
    /// The URL before the path.
    private let root: String
    /// Path and query can have placeholders such as `{name}`.
    private let path: String
    private let query: String

    /// - Throws: A ``TransferError`` that explains the form of addresses. It never repeats the address, whose query may hold a secret.
    init(_ endpoint: Endpoint) throws(TransferError) {
        try endpoint.validate()
        try ReservedHeaders.http.check(endpoint.credentials)
        let text = endpoint.address
        // A URL, which was checked.
        let scheme = text.prefix { $0 != ":" }
        let parts = scheme.lowercased().split(separator: "+", maxSplits: 1)
        guard parts.count == 2, let upload = Upload(rawValue: String(parts[1])) else {
            throw .invalidEndpoint(
                "The endpoint address must begin with https+put://, https+form:// or https+get://, or with http in place of https.")
        }
        let rest = text.dropFirst(scheme.count + "://".count)
        let authority = rest.prefix { !"/?".contains($0) }
        let target = rest.dropFirst(authority.count)
        guard !authority.contains(where: { "{}".contains($0) }) else {
            throw .invalidEndpoint(
                "The endpoint address has a brace before its path; placeholders can only be in the path and the query.")
        }
        try Self.checkPlaces(in: target)
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        root = "\(parts[0])://\(host)"
        guard let origin = URL(string: root).flatMap(Origin.init) else {
            throw .invalidEndpoint("The endpoint address has no valid host, or is not for https or http.")
        }
        self.upload = upload
        self.origin = origin
        userName = host.count < authority.count ? String(authority.dropLast(host.count + 1)).removingPercentEncoding : nil
        guard userName?.contains(":") != true else {
            throw .invalidEndpoint("The user name in the endpoint address has a colon, which HTTP Basic can't send.")
        }
        path = String(target.prefix { $0 != "?" })
        query = String(target.dropFirst(path.count))
    }

    /// Rejects braces that are not placeholders, because a misspelt one would send all files to one address.
    private static func checkPlaces(in target: Substring) throws(TransferError) {
        var rest = target
        while let brace = rest.firstIndex(where: { "{}".contains($0) }) {
            rest = rest[brace...]
            if let place = TransferNames.places.first(where: { rest.hasPrefix($0) }) {
                rest = rest.dropFirst(place.count)
                continue
            }
            let word = rest.dropFirst().prefix { $0.isASCII && $0.isLetter }
            // Other text is not shown: it may be a part of a signature.
            let isPlace = rest.first == "{" && !word.isEmpty && rest[word.endIndex...].first == "}"
            throw .invalidEndpoint(
                "The endpoint address has \(isPlace ? "{\(word)}" : "a brace"), which is not a placeholder; placeholders are "
                    + "\(TransferNames.places.joined(separator: ", ")). Write %7B and %7D for literal braces.")
        }
    }

    /// Whether the address has a placeholder for the remote name.
    private var namesFiles: Bool { ["{name}", "{path}"].contains { path.contains($0) || query.contains($0) } }

    /// Whether each transfer has an address of its own.
    var namesTransfers: Bool { path.contains(TransferNames.transfer) || query.contains(TransferNames.transfer) }

    /// The URL that a file is downloaded from.
    func download(_ names: TransferNames) -> String { url(names, appendsPath: !namesFiles) }

    /// The URL that a file is uploaded to.
    func upload(_ names: TransferNames, by upload: Upload) -> String { url(names, appendsPath: upload == .put && !namesFiles) }

    var hasQuery: Bool { !query.isEmpty }

    /// The URL for checks without a file name: the folder of the first placeholder.
    var folder: String {
        let known = path.prefix { $0 != "{" }
        let end = known.count == path.count ? known.endIndex : known.lastIndex(of: "/").map { known.index(after: $0) } ?? known.startIndex
        return root + Self.clean(known.isEmpty ? "/" : String(known[..<end]))
    }

    private func url(_ names: TransferNames, appendsPath: Bool) -> String {
        var path = path.isEmpty ? "/" : path
        if appendsPath { path += (path.hasSuffix("/") ? "" : "/") + "{path}" }
        return root + Self.clean(names.fill(path + query, percentEncoded: true))
    }

    /// Encodes the characters that are invalid in URLs (RFC 3986, section 2).
    private static func clean(_ text: String) -> String {
        String(
            decoding: text.utf8.flatMap { byte in
                let isPlain = (0x21...0x7E).contains(byte) && !"\"<>\\^`{|}".utf8.contains(byte)
                return isPlain ? [byte] : Array(RemotePath.percentEncoded([byte]).utf8)
            }, as: UTF8.self)
    }
}
