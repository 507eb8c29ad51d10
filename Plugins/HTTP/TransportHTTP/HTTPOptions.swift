public import HTTPSupport
public import TransferCore
import TransportSupport

/// The options of an endpoint for ``HTTPTransport``, or of a session that uses it.
///
/// ```swift
/// let endpoint = Endpoint.http("https+put://bucket.example.com/in/", options: HTTPOptions(metadataPrefix: "x-amz-meta-"))
/// ```
///
/// A session can have the same options. From ``requests``, a session can set only
/// ``/HTTPSupport/RequestOptions/parallelThreshold`` and ``/HTTPSupport/RequestOptions/contentDisposition``. If a session's option differs
/// from the default, it takes precedence over the endpoint's option:
///
/// ```swift
/// let options = SessionOptions(settings: HTTPOptions(upload: .form, fileField: "reel").settings)
/// ```
///
/// The queue rejects a session with an option for another kind of transfer, such as ``fields`` for downloads. <doc:PlainHTTP> lists all
/// settings.
public struct HTTPOptions: Hashable, Sendable {
    /// A method of uploading files.
    public enum Upload: String, CaseIterable, Sendable {
        /// Each file is the content of a `PUT` request (RFC 9110, section 9.3.4).
        case put
        /// Each file is the content of a `POST` request (RFC 9110, section 9.3.3). The server may create a record for each request,
        /// for example a row in a database.
        case post
        /// Each file is a part of a form, in a `POST` request of the type `multipart/form-data` (RFC 7578).
        case form
    }

    /// A check of an uploaded file.
    public enum UploadCheck: String, CaseIterable, Sendable {
        /// The response to the `PUT` must be a success after the last byte. If it has no content and contains a checksum of the file
        /// (`Repr-Digest`, RFC 9530, or `Digest`), the checksum must match. Costs no request.
        case response
        /// In addition, a `HEAD` request must report the size of the file. Costs one request for each file.
        case head
    }

    /// The upload method; nil for the method of the address. Only for sessions.
    public var upload: Upload?

    /// The name of the form field that contains the file; not empty. The files of a `TransferItem.form` have their own field names.
    public var fileField: String

    /// The additional text fields of the form, by name. In a value, the transport replaces the placeholders `{name}`, `{path}` and
    /// `{transfer}` of `Endpoint.http` without encoding, and keeps other braces. It also sends a session's metadata as text fields. A metadata
    /// value takes precedence over an option of the same name. The file is the last part of the form.
    public var fields: [String: String]

    /// The local paths of additional files in the form, by the names of their fields. Each path begins with `/` or `{source}`. For a form
    /// whose files are chosen by the app, use `TransferItem.form` instead.
    ///
    /// The transport replaces `{name}`, `{path}` and `{transfer}` as in ``fields``, and `{source}` with the path of the uploaded file, so
    /// `{source}.xmp` is a file next to that file. Each attempt sends these files before the uploaded file. Their names in the form are the last
    /// components of their paths. Progress and totals do not include them. If one of these files is missing, or changes while it is sent, the
    /// attempt fails.
    public var files: [String: [String]]

    /// The media type of all files; nil to derive it from each file's name. A session's header `Content-Type` takes precedence.
    public var contentType: String?

    /// The prefix of the headers in which a `PUT` or `POST` sends a session's metadata, such as `x-amz-meta-`; nil to reject sessions with
    /// metadata, except for sessions of forms, which send metadata in text fields.
    public var metadataPrefix: String?

    /// Additional statuses, from 300 to 399, that mean that a file has arrived, for example 302 if a form handler then shows a page. In
    /// response to a `POST`, with or without a form, 303 always means that the file has arrived (RFC 9110, section 15.4.4). With 307 or
    /// 308, a redirect to a trusted target is followed first.
    public var acceptedStatuses: Set<Int>

    /// The time limit of one attempt for a file; nil for none. A session's `stallTimeout` and `responseTimeout` limit the time without
    /// progress.
    public var transferTimeout: Duration?

    /// The maximum number of bytes of the server's response to keep with a complete file or form, from 0 to 262,144. Default: 4,096.
    public var responseLimit: Int

    /// Whether a fleet may send a file or form by `POST` a second time although the server may already have received it, because the response was
    /// lost or the sending member died. If false, the file or form fails with the code `outcomeUnknown`, and a retry by the user sends it again. A
    /// queue that belongs to no fleet always sends it again.
    public var repeatsUnknownOutcomes: Bool

    /// How a `PUT` is verified if the session's verification is `size`. With `checksum`, the transport compares checksums; see <doc:PlainHTTP>.
    public var uploadCheck: UploadCheck

    /// Whether the server supports WebDAV (RFC 4918). Only for endpoints.
    ///
    /// If true, the transport creates the missing folders of a remote name with `MKCOL` before it sends the `PUT`. This costs one request for
    /// each folder of a session. Folders can be downloaded, because `PROPFIND` lists them. For listings, the address must name a folder, without
    /// placeholders.
    public var webDAV: Bool

    /// The options for all requests.
    public var requests: RequestOptions

    /// The URLs for single files, by their remote names. Only for sessions. A session with URLs must have one for each of its files, unless
    /// the item has an `uploadURL`. The `uploadURL` of an item takes precedence. The URLs may be secret, so descriptions of the options do
    /// not contain them.
    public var uploadURLs: [String: String] {
        get { capabilities.values }
        set { capabilities.values = newValue }
    }

    /// The values of ``uploadURLs``, which descriptions omit.
    var capabilities: NamedCapabilities

    /// Creates options. Each parameter sets the property of the same name.
    public init(
        upload: Upload? = nil, fileField: String = "file", fields: [String: String] = [:], files: [String: [String]] = [:],
        contentType: String? = nil, metadataPrefix: String? = nil, acceptedStatuses: Set<Int> = [], transferTimeout: Duration? = nil,
        uploadURLs: [String: String] = [:], responseLimit: Int = ServerResponse.defaultLimit, uploadCheck: UploadCheck = .response,
        repeatsUnknownOutcomes: Bool = false, webDAV: Bool = false, requests: RequestOptions = RequestOptions()
    ) {
        self.upload = upload
        self.fileField = fileField
        self.fields = fields
        self.files = files
        self.contentType = contentType
        self.metadataPrefix = metadataPrefix
        self.acceptedStatuses = acceptedStatuses
        self.transferTimeout = transferTimeout
        self.responseLimit = responseLimit
        self.repeatsUnknownOutcomes = repeatsUnknownOutcomes
        self.uploadCheck = uploadCheck
        self.webDAV = webDAV
        self.requests = requests
        capabilities = NamedCapabilities(uploadURLs)
    }

    /// Reads the options from the settings of an endpoint and a session. The session's settings take precedence.
    ///
    /// - Throws: A `TransferError` with the code `invalidEndpoint` that names the invalid setting.
    public init(settings: [String: String], session: [String: String] = [:]) throws(TransferError) {
        self = try Self.table.read(settings, session: session)
        try requests.validate()
    }

    /// The options as settings of an endpoint or a session. Omits options with their default value.
    public var settings: [String: String] { Self.table.write(self) }

    /// Returns the session's URL for a file. Names are compared byte by byte, because equivalent Unicode texts can name different files.
    ///
    /// - Returns: nil if the session has no URLs.
    /// - Throws: A ``TransferError`` if the session has URLs for other files only, because this file would then be sent to an unintended
    ///   address.
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
