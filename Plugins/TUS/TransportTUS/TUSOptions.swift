import CurlEngine
import Foundation
public import HTTPSupport
public import TransferCore
import TransportSupport

/// The options of an endpoint for ``TUSTransport``.
///
/// ```swift
/// let endpoint = Endpoint.tus("https://upload.example.com/files/", options: TUSOptions(chunkSize: 50 << 20))
/// ```
public struct TUSOptions: Hashable, Sendable {
    /// The maximum size of a chunk, the content of one `PATCH`, in bytes; 1 or more. If nil, a `PATCH` sends the rest of the file; but if each
    /// `PATCH` has a checksum in a header, it sends at most 8 MiB. A session's chunk size takes precedence.
    public var chunkSize: Int64?

    /// A number of bytes, from 1 to ``chunkSize``. The size of every chunk except the last is a multiple of this number.
    public var chunkMultiple: Int64

    /// The maximum size in bytes of a file that is sent with the request that creates its upload, if the server supports that; 0 for never.
    public var singleRequestSize: Int64

    /// Whether to always send `PATCH` as `POST` with `X-HTTP-Method-Override`. If false, the transport does so only after a 405 or 501 response.
    public var methodOverride: Bool

    /// The extensions to use, regardless of the server's list; nil for the server's list.
    ///
    /// If a server lists an extension but implements it incorrectly, list the other extensions here. If a server or proxy does not respond to
    /// `OPTIONS`, list the extensions that the server is known to support. With an empty array, the transport uses only the core protocol and
    /// the creation of uploads. In all cases, the transport requests the server's features, because they also contain its maximum size and
    /// checksum algorithms.
    ///
    /// ```swift
    /// let options = TUSOptions(extensions: [.creation, .creationWithUpload, .termination])
    /// ```
    public var extensions: [TUSExtension]?

    /// The protocol to use.
    public var dialect: UploadDialect

    /// The method of the request that creates an upload with the IETF protocol.
    public var creationMethod: CreationMethod

    /// The options for all requests.
    public var requests: RequestOptions

    /// A protocol for resumable uploads, for ``TUSOptions/dialect``.
    public enum UploadDialect: String, CaseIterable, Hashable, Sendable {
        /// tus 1.0.0 if the server supports it. Otherwise the IETF protocol, if the server announces it in response to `OPTIONS`. The
        /// transport also sends `OPTIONS` after the server has rejected the creation of a tus upload.
        case auto
        /// Only tus 1.0.0.
        case tus
        /// Only the IETF's *Resumable Uploads for HTTP* (draft-ietf-httpbis-resumable-upload), in the newest version that both sides support.
        case ietf
    }

    /// The method of the request that creates an upload, for ``TUSOptions/creationMethod``. If a file has its own creation URL, the request
    /// goes to this URL, whatever the method.
    public enum CreationMethod: String, CaseIterable, Hashable, Sendable {
        /// A `POST` to the endpoint's address.
        case post = "POST"
        /// A `PUT` to the file's name below the endpoint's address.
        case put = "PUT"
        /// A `PATCH` to the endpoint's address.
        case patch = "PATCH"
    }

    /// Creates options. Each parameter sets the property of the same name.
    public init(
        chunkSize: Int64? = nil, chunkMultiple: Int64 = 1, singleRequestSize: Int64 = 1 << 20, methodOverride: Bool = false,
        extensions: [TUSExtension]? = nil, dialect: UploadDialect = .auto, creationMethod: CreationMethod = .post,
        requests: RequestOptions = RequestOptions()
    ) {
        self.chunkSize = chunkSize
        self.chunkMultiple = chunkMultiple
        self.singleRequestSize = singleRequestSize
        self.methodOverride = methodOverride
        self.extensions = extensions
        self.dialect = dialect
        self.creationMethod = creationMethod
        self.requests = requests
    }

    /// Reads the options from an endpoint's settings, a dictionary of strings.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint` that names the invalid setting.
    public init(settings: [String: String]) throws(TransferError) {
        self = try Self.table.read(settings)
        try requests.validate()
        if let problem = chunkSize.flatMap(problem(ofChunksOf:)) { throw .invalidEndpoint(problem) }
    }

    /// The options as settings of an endpoint. Omits options with their default value.
    public var settings: [String: String] { Self.table.write(self) }

    /// Explains why the sizes of chunks of at most `chunkSize` bytes can't be multiples of ``chunkMultiple``; nil if they can.
    func problem(ofChunksOf chunkSize: Int64) -> String? {
        guard chunkSize < chunkMultiple else { return nil }
        return
            "Chunks of at most \(chunkSize) bytes can't be multiples of \(chunkMultiple) bytes (setting chunkMultiple); use a chunk size of at least \(chunkMultiple) bytes."
    }

    /// Checks a URL for creating uploads (`AttemptOptions.creationURL`).
    ///
    /// - Parameter endpointOrigin: The origin of the endpoint's address.
    /// - Returns: The origin of the URL.
    /// - Throws: A ``TransferError``. Its class is ``FailureClass/unsupported`` if the endpoint does not trust the URL's origin, because another
    ///   endpoint of the account may trust it.
    func origin(
        ofCreationURL text: String, at endpoint: Endpoint, _ endpointOrigin: Origin
    ) throws(TransferError) -> Origin {
        try UploadURLCheck.check(text, as: "creation URL")
        guard let origin = URL(string: text).flatMap(Origin.init) else {
            throw TransferError(.permanent, .invalidUploadURL, "The file's creation URL is not a URL; write it as https://host/path.")
        }
        guard origin == endpointOrigin || requests.trustedOrigins.contains(origin) else {
            throw TransferError(
                .unsupported, .invalidUploadURL,
                "The creation URL is at \(origin), which the endpoint \(endpoint.location) does not trust. To trust it, add it to the "
                    + "endpoint's setting origins (--setting 'origins=\(origin)').")
        }
        return origin
    }

    static let table = SettingTable(
        of: .tus, TUSOptions(),
        [
            Setting(
                "chunkMultiple", \.chunkMultiple, .bytes(from: 1), "all chunks except the last are a multiple of this many bytes, 1 or more"
            ),
            Setting(
                "chunkSize", \.chunkSize, .bytes(from: 1), "the maximum number of bytes of one `PATCH`, 1 or more",
                nil: "the rest of the file"),
            Setting(
                "creationMethod", \.creationMethod, .choice,
                "`POST`, `PUT` or `PATCH`: the method of the request that creates an upload with the IETF protocol"),
            Setting(
                "dialect", \.dialect, .choice,
                "`auto` for tus if the server supports it and otherwise the IETF protocol, `tus` or `ietf` for only this protocol"),
            Setting(
                "extensions", \.extensions, .extensions,
                "the extensions to use, separated by commas, whatever the server lists; `none` for only the core protocol and the creation of uploads",
                nil: "the server's list"),
            Setting(
                "methodOverride", \.methodOverride, .flag, "`true` to always send `PATCH` as `POST` with `X-HTTP-Method-Override`"),
            Setting(
                "singleRequestSize", \.singleRequestSize, .bytes(from: 0),
                "the maximum size in bytes of a file that is sent in the creation request; 0 for none"),
        ]
            + RequestOptions.settings { (name, value) throws(TransferError) in try ReservedHeaders.tus.check(name, value) }
            .map { $0.within(\.requests) })
}

extension ReservedHeaders {
    /// The reserved headers of the tus transport, for all versions of the protocol.
    static let tus = ReservedHeaders(
        of: .tus,
        names: ["content-type", "x-http-method-override", "content-disposition", "content-digest", "repr-digest", "want-repr-digest"],
        prefixes: ["upload-", "tus-"])
}

extension SettingFormat<[TUSExtension]> {
    /// The names of extensions, separated by commas or white space, or `none`.
    fileprivate static var extensions: Self {
        let none = "none"
        return Self("none, or names among \(TUSExtension.allCases.map(\.rawValue).joined(separator: ", "))") { text in
            if text == none { return [] }
            let extensions = text.words.map { TUSExtension(rawValue: $0.lowercased()) }
            return extensions.isEmpty || extensions.contains(nil) ? nil : extensions.compactMap(\.self)
        } text: {
            $0.isEmpty ? none : $0.map(\.rawValue).joined(separator: ",")
        }
    }
}
