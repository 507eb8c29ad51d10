/// The options of a session that a transport needs for an attempt.
public struct AttemptOptions: Hashable, Sendable {
    /// Names and values to send to the server with the file. The transport chooses their encoding.
    public var metadata: [String: String]

    /// Headers for each request, for HTTP transports. Must not contain secrets.
    public var headers: [String: String]

    /// How the transport verifies that the content arrived as sent.
    public var verification: Verification

    /// The checksum that a download must have, in the format of ``TransferReceipt/checksum``, for example `sha256:` and hexadecimal digits;
    /// nil to accept any content.
    ///
    /// The transport compares this checksum regardless of ``verification``. A transport that can't compare checksums throws an error of the
    /// class ``FailureClass/unsupported`` before the first byte.
    public var expectedChecksum: String?

    /// Settings that override the endpoint's ``Endpoint/settings``, by name. The transport defines which settings a session can override.
    ///
    /// A value can grant access, like the URL of an upload. Therefore, the description of these options contains only the names of the
    /// settings.
    public var settings: [String: String] {
        get { settingCapabilities.values }
        set { settingCapabilities = NamedCapabilities(newValue) }
    }

    private var settingCapabilities: NamedCapabilities

    /// How the transport creates a file on a server that chooses the name.
    public var creation: CreationMode

    /// The maximum number of content bytes in one upload request, at least 1. If nil, the endpoint's own setting applies, or no limit.
    public var chunkSize: Int64?

    /// The maximum number of parallel segments of a large file, 1 to 64.
    public var segmentsPerFile: Int

    /// The policy for an existing remote file. Only for uploads, and only for transports that store files under their remote names. For
    /// downloads, see ``DownloadDestination/overwrite``.
    public var overwrite: OverwritePolicy

    /// The URL of an existing upload for the file, for transports that would otherwise create an upload; nil if there is no such upload.
    ///
    /// The URL grants access. It is never logged and is not in the description of these options.
    public var uploadURL: String? {
        get { uploadCapability?.text }
        set { uploadCapability = newValue.map(Capability.init) }
    }

    private var uploadCapability: Capability?

    /// The URL at which the transport creates the file's upload, instead of the endpoint's address; nil for the endpoint's address.
    ///
    /// A transport throws an error of the class ``FailureClass/unsupported`` if it creates no uploads, or if its endpoint does not trust
    /// the URL. The URL can contain a signature. It is never logged and is not in the description of these options.
    public var creationURL: String? {
        get { creationCapability?.text }
        set { creationCapability = newValue.map(Capability.init) }
    }

    private var creationCapability: Capability?

    /// Creates options; each has a default.
    public init(
        metadata: [String: String] = [:], headers: [String: String] = [:], verification: Verification = .size,
        creation: CreationMode = .automatic, chunkSize: Int64? = nil, segmentsPerFile: Int = 1,
        overwrite: OverwritePolicy = .never, uploadURL: String? = nil, creationURL: String? = nil, expectedChecksum: String? = nil,
        settings: [String: String] = [:]
    ) {
        self.metadata = metadata
        self.headers = headers
        self.verification = verification
        self.creation = creation
        self.chunkSize = chunkSize
        self.segmentsPerFile = segmentsPerFile
        self.overwrite = overwrite
        self.expectedChecksum = expectedChecksum
        settingCapabilities = NamedCapabilities(settings)
        uploadCapability = uploadURL.map(Capability.init)
        creationCapability = creationURL.map(Capability.init)
    }
}

/// How a transport verifies that the content arrived as sent.
public enum Verification: String, Hashable, Sendable, Codable, CaseIterable {
    /// The transport relies on the server's confirmation.
    case none
    /// The transport compares the sizes at both ends.
    case size
    /// The transport compares checksums of the content, with a method that the server supports too. Without a common method, the transfer
    /// fails before its first byte, or, for a `PUT` to a plain HTTP server, after its last byte.
    case checksum
}

/// How a transport creates a file on a server that chooses the name.
public enum CreationMode: String, Hashable, Sendable, Codable, CaseIterable {
    /// The transport sends as few requests as the server allows. The request that creates a small file also carries the file's content. If
    /// the response is lost, one copy, complete or partial, can remain on the server.
    case automatic
    /// A separate request creates the file without content. If the response is lost, one empty file can remain on the server.
    case separate
}
