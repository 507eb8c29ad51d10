import Foundation
import HTTPSupport
import TransferCore

/// An endpoint's address, taken apart.
struct EndpointAddress {
    /// How files are uploaded.
    enum Upload: String {
        case put
        case form
        /// Not at all.
        case none = "get"
    }

    let upload: Upload
    let origin: Origin
    let userName: String?
    /// What comes before the path.
    private let root: String
    /// With `{name}` and the like in both.
    private let path: String
    private let query: String

    /// - Throws: A ``TransferError`` that says how addresses are written. It never repeats the address, whose query may hold a secret.
    init(_ endpoint: Endpoint) throws(TransferError) {
        try endpoint.validate()
        try ReservedHeaders.http.check(endpoint.credentials)
        let text = endpoint.address
        // A URL, as was checked.
        let scheme = text.prefix { $0 != ":" }
        let parts = scheme.lowercased().split(separator: "+", maxSplits: 1)
        guard parts.count == 2, let upload = Upload(rawValue: String(parts[1])) else {
            throw SettingsValue.invalid(
                "The endpoint address must begin with https+put://, https+form:// or https+get://, or with http in place of https.")
        }
        let rest = text.dropFirst(scheme.count + "://".count)
        let authority = rest.prefix { !"/?".contains($0) }
        let target = rest.dropFirst(authority.count)
        guard !authority.contains(where: { "{}".contains($0) }) else {
            throw SettingsValue.invalid("The endpoint address has a brace before its path; names can stand in the path and the query only.")
        }
        try Self.checkPlaces(in: target)
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        root = "\(parts[0])://\(host)"
        guard let origin = URL(string: root).flatMap(Origin.init) else {
            throw SettingsValue.invalid("The endpoint address has no host that a URL can have, or is neither of https nor of http.")
        }
        self.upload = upload
        self.origin = origin
        userName = host.count < authority.count ? String(authority.dropLast(host.count + 1)).removingPercentEncoding : nil
        guard userName?.contains(":") != true else {
            throw SettingsValue.invalid("The user name in the endpoint address has a colon, which HTTP Basic has no way to send.")
        }
        path = String(target.prefix { $0 != "?" })
        query = String(target.dropFirst(path.count))
    }

    /// Refuses braces that stand for nothing, as misspelt places do: all files would go to one address.
    private static func checkPlaces(in target: Substring) throws(TransferError) {
        var rest = target
        while let brace = rest.firstIndex(where: { "{}".contains($0) }) {
            rest = rest[brace...]
            if let place = TransferNames.places.first(where: { rest.hasPrefix($0) }) {
                rest = rest.dropFirst(place.count)
                continue
            }
            let word = rest.dropFirst().prefix { $0.isASCII && $0.isLetter }
            // What has another form is not shown: it may be a part of a signature.
            let isPlace = rest.first == "{" && !word.isEmpty && rest[word.endIndex...].first == "}"
            throw SettingsValue.invalid(
                "The endpoint address has \(isPlace ? "{\(word)}" : "a brace"), which stands for nothing; what stands for something is "
                    + "\(TransferNames.places.joined(separator: ", ")). Write %7B and %7D for braces that are meant as such.")
        }
    }

    /// Whether the address says itself where the remote name goes.
    private var namesFiles: Bool { ["{name}", "{path}"].contains { path.contains($0) || query.contains($0) } }

    /// Whether each transfer has an address of its own.
    var namesTransfers: Bool { path.contains(TransferNames.transfer) || query.contains(TransferNames.transfer) }

    /// Where a file is received from.
    func download(_ names: TransferNames) -> String { url(names, appendsPath: !namesFiles) }

    /// Where a file is sent to in this way.
    func upload(_ names: TransferNames, by upload: Upload) -> String { url(names, appendsPath: upload == .put && !namesFiles) }

    var hasQuery: Bool { !query.isEmpty }

    /// What can be asked about without the name of a file: the folder that the first of them is in.
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

    /// With what URLs can't have as its code (RFC 3986, section 2).
    private static func clean(_ text: String) -> String {
        String(
            decoding: text.utf8.flatMap { byte in
                let isPlain = (0x21...0x7E).contains(byte) && !"\"<>\\^`{|}".utf8.contains(byte)
                return isPlain ? [byte] : Array(RemotePath.percentEncoded([byte]).utf8)
            }, as: UTF8.self)
    }
}
