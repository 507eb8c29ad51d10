public import HTTPSupport
public import TransferCore
import TransportSupport

/// The options of an endpoint for ``HTTPTransport``, or of a session with its files.
///
/// ```swift
/// let endpoint = Endpoint.http("https+put://bucket.example.com/in/", options: HTTPOptions(metadataPrefix: "x-amz-meta-"))
/// ```
///
/// A session can have options of its own: all but those of ``requests``, of which it can set only
/// ``HTTPSupport/RequestOptions/parallelThreshold`` and ``HTTPSupport/RequestOptions/contentDisposition``. Where they differ from the
/// defaults, they take precedence over the endpoint's:
///
/// ```swift
/// let options = SessionOptions(settings: HTTPOptions(upload: .form, fileField: "reel").settings)
/// ```
///
/// A session with an option that has no effect on its files is rejected. <doc:PlainHTTP> has all settings in tables.
public struct HTTPOptions: Hashable, Sendable {
    /// How files are uploaded.
    public enum Upload: String, CaseIterable, Sendable {
        /// Each file is the content of a `PUT` request (RFC 9110, section 9.3.4).
        case put
        /// Each file is a part of a form, in a `POST` request of the type `multipart/form-data` (RFC 7578).
        case form
    }

    /// How files are uploaded; nil for the method of the address. Only for sessions.
    public var upload: Upload?

    /// The name of the form's field for the file; not empty.
    public var fileField: String

    /// The form's additional text fields, by name. `{name}`, `{path}` and `{transfer}` in a value are replaced unencoded; other braces stay. A
    /// session's metadata are text fields, too, and take precedence over an option of the same name. The file is the last part of the form.
    public var fields: [String: String]

    /// The local paths of additional files in the form, by the names of their fields. Each begins with `/` or `{source}`.
    ///
    /// `{name}`, `{path}` and `{transfer}` are replaced, and `{source}` by the path of the uploaded file: `{source}.xmp` lies beside each. Such a
    /// file is sent with each attempt, before the file itself, under the last component of its path. Figures do not include it. If it is missing or
    /// changes while it is sent, the attempt fails.
    public var files: [String: [String]]

    /// The media type of all files; nil to derive it from their names. A session's header `Content-Type` takes precedence.
    public var contentType: String?

    /// The prefix that makes headers of a session's metadata in a `PUT`, such as `x-amz-meta-`; nil to reject sessions with metadata.
    public var metadataPrefix: String?

    /// Further statuses that mean that a file has arrived, from 300 to 399, such as 302 of a form handler that then shows a page. 303 of a form
    /// always does (RFC 9110, section 15.4.4). 307 and 308 with a trusted target are followed first.
    public var acceptedStatuses: Set<Int>

    /// The time limit of one attempt for a file; nil for none. A session's `stallTimeout` and `responseTimeout` limit the time without progress.
    public var transferTimeout: Duration?

    /// The options for all requests.
    public var requests: RequestOptions

    /// The URLs for single files, by their remote names. Only for sessions, which then have one for each of their files. An item's own `uploadURL`
    /// takes precedence. The URLs are capabilities, so descriptions of the options don't contain them.
    public var uploadURLs: [String: String] {
        get { capabilities.values }
        set { capabilities.values = newValue }
    }

    var capabilities: NamedCapabilities

    /// Makes options. Each parameter is the property of the same name.
    public init(
        upload: Upload? = nil, fileField: String = "file", fields: [String: String] = [:], files: [String: [String]] = [:],
        contentType: String? = nil, metadataPrefix: String? = nil, acceptedStatuses: Set<Int> = [], transferTimeout: Duration? = nil,
        uploadURLs: [String: String] = [:], requests: RequestOptions = RequestOptions()
    ) {
        self.upload = upload
        self.fileField = fileField
        self.fields = fields
        self.files = files
        self.contentType = contentType
        self.metadataPrefix = metadataPrefix
        self.acceptedStatuses = acceptedStatuses
        self.transferTimeout = transferTimeout
        self.requests = requests
        capabilities = NamedCapabilities(uploadURLs)
    }

    /// Reads the options from the settings of an endpoint and a session, which are texts by name. The session's take precedence.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint` that names the invalid setting.
    public init(settings: [String: String], session: [String: String] = [:]) throws(TransferError) {
        self = try Self.table.read(settings, session: session)
        try requests.validate()
    }

    /// The options as settings of an endpoint or a session: those with other values than the defaults.
    public var settings: [String: String] { Self.table.write(self) }

    /// The session's URL for a file. The names must be equal byte for byte: equivalent Unicode texts are different files.
    ///
    /// - Returns: Nil if the session has no such URLs.
    /// - Throws: A ``TransferError`` if the session has URLs, but none for this file, which would otherwise go to an unintended place.
    func uploadURL(for path: RemotePath) throws(TransferError) -> String? {
        guard !uploadURLs.isEmpty else { return nil }
        if let text = String(validating: path.bytes, as: UTF8.self), let found = uploadURLs.index(forKey: text),
            uploadURLs[found].key.utf8.elementsEqual(path.bytes)
        {
            return uploadURLs[found].value
        }
        let names = uploadURLs.keys.sorted().prefix(10).joined(separator: ", ")
        throw .invalidEndpoint("The session has a setting uploadURL for \(names), but none for \(path); use the remote name of each file.")
    }
}
