import Foundation
import HTTPSupport
import TransferCore

/// An endpoint's address, split into its parts.
struct EndpointAddress {
    /// The upload method of an address.
    enum Upload: String {
        case put
        case post
        case form
        /// The address sets no upload method, so it is for downloads, unless a session sets the method.
        case none = "get"
    }

    let upload: Upload
    let origin: Origin
    let userName: String?
    /// The scheme, host and port of the URL.
    private let root: String
    /// The path. Both the path and the query can have placeholders such as `{name}`.
    private let path: String
    /// The query, including its `?`; empty for an address without a query.
    private let query: String

    /// - Throws: A ``TransferError`` that explains how to write addresses. It never repeats the address, whose query may contain a secret.
    init(_ endpoint: Endpoint) throws(TransferError) {
        try endpoint.validate()
        try ReservedHeaders.http.check(endpoint.credentials)
        let text = endpoint.address
        // `validate()` has checked that the address is a URL.
        let scheme = text.prefix { $0 != ":" }
        let parts = scheme.lowercased().split(separator: "+", maxSplits: 1)
        guard parts.count == 2, let upload = Upload(rawValue: String(parts[1])) else {
            throw .invalidEndpoint(
                "The endpoint address must begin with https+put://, https+post://, https+form:// or https+get://. For a server without TLS, "
                    + "write http+ instead of https+.")
        }
        let rest = text.dropFirst(scheme.count + "://".count)
        let authority = rest.prefix { !"/?".contains($0) }
        let target = rest.dropFirst(authority.count)
        guard !authority.contains(where: { "{}".contains($0) }) else {
            throw .invalidEndpoint(
                "The endpoint address has a brace before its path; placeholders can only be in the path and the query.")
        }
        try Self.checkPlaceholders(in: target)
        let host = authority.split(separator: "@", omittingEmptySubsequences: false).last ?? ""
        root = "\(parts[0])://\(host)"
        guard let origin = URL(string: root).flatMap(Origin.init) else {
            throw .invalidEndpoint("The endpoint address has no valid host, or its scheme does not begin with https or http.")
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

    /// Rejects braces that are not placeholders, because a misspelt placeholder would send all files to the same address.
    private static func checkPlaceholders(in target: Substring) throws(TransferError) {
        var rest = target
        while let brace = rest.firstIndex(where: { "{}".contains($0) }) {
            rest = rest[brace...]
            if let placeholder = TransferNames.all.first(where: { rest.hasPrefix($0) }) {
                rest = rest.dropFirst(placeholder.count)
                continue
            }
            let word = rest.dropFirst().prefix { $0.isASCII && $0.isLetter }
            // The message omits other text, which may be part of a signature.
            let isPlaceholder = rest.first == "{" && !word.isEmpty && rest[word.endIndex...].first == "}"
            throw .invalidEndpoint(
                "The endpoint address has \(isPlaceholder ? "{\(word)}" : "a brace"), which is not a placeholder; placeholders are "
                    + "\(TransferNames.all.joined(separator: ", ")). Write %7B and %7D for literal braces.")
        }
    }

    private var hasNamePlaceholder: Bool { ["{name}", "{path}"].contains { path.contains($0) || query.contains($0) } }

    var hasTransferPlaceholder: Bool { path.contains(TransferNames.transfer) || query.contains(TransferNames.transfer) }

    /// Whether two files in different folders get the same URL if the last components of their remote names are equal.
    var mergesFolders: Bool { !isFolder && !hasTransferPlaceholder && !path.contains("{path}") && !query.contains("{path}") }

    var isFolder: Bool { !hasNamePlaceholder && !hasTransferPlaceholder }

    func download(_ names: TransferNames) -> String { url(names, appendsPath: !hasNamePlaceholder) }

    func upload(_ names: TransferNames, by upload: Upload) -> String { url(names, appendsPath: upload == .put && !hasNamePlaceholder) }

    /// Returns the URL of a remote folder. The path of the URL ends with a slash. Requires ``isFolder``.
    func folder(_ path: RemotePath) -> String {
        let url = download(TransferNames(path))
        let end = url.firstIndex(of: "?") ?? url.endIndex
        return url[..<end].hasSuffix("/") ? url : "\(url[..<end])/\(url[end...])"
    }

    var hasQuery: Bool { !query.isEmpty }

    /// The URL for checks without a file name: the address without its query. If the path has a placeholder, the URL ends with the folder
    /// that contains the first placeholder.
    var folder: String {
        let known = path.prefix { $0 != "{" }
        let end = known.count == path.count ? known.endIndex : known.lastIndex(of: "/").map { known.index(after: $0) } ?? known.startIndex
        return root + Self.clean(known.isEmpty ? "/" : String(known[..<end]))
    }

    /// Returns the address with its placeholders replaced.
    ///
    /// - Parameter appendsPath: Whether to append the whole remote name to the path.
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
