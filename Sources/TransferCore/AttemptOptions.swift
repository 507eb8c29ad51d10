/// What a session asks of a transport.
public struct AttemptOptions: Hashable, Sendable {
    /// Names and values told to the server with the file, in a form that the transport decides.
    public var metadata: [String: String]

    /// Headers that are sent with each request, for transports that speak HTTP. None of them is a secret.
    public var headers: [String: String]

    /// How the transport makes sure that what arrived is what was sent.
    public var verification: Verification

    /// The checksum that a download must have, as ``TransferReceipt/checksum`` has it: `sha256:` and hexadecimal digits, for example. Nil for none.
    ///
    /// It is compared whatever ``verification`` says. A transport that can't do that throws an error of the class
    /// ``FailureClass/unsupported`` before the first byte.
    public var expectedChecksum: String?

    /// What the session wants otherwise than its endpoint, by the endpoint's ``Endpoint/settings``: only what the transport lets a session say.
    /// A value may be a capability, as the URL of an upload is: of what is printed of these options only the names are a part.
    public var settings: [String: String] {
        get { ownSettings.values }
        set { ownSettings = NamedCapabilities(newValue) }
    }

    private var ownSettings: NamedCapabilities

    /// How the transport makes a file at a server that names it itself.
    public var creation: CreationMode

    /// The most bytes in one request, for transports that send requests; nil for no limit.
    public var chunkSize: Int64?

    /// Into how many parts a large file is split that move at once, 1 to 64.
    public var parallel: Int

    /// What happens to a file at the endpoint that has the name already, for uploads by transports that give files their names there. Of a
    /// download, see ``DownloadDestination/overwrite``.
    public var overwrite: OverwritePolicy

    /// Where the file already has a place at the server, for transports that would otherwise make one. A capability: never logged, and left out
    /// of what is printed of these options.
    public var uploadURL: String? {
        get { uploadPlace?.text }
        set { uploadPlace = newValue.map(Capability.init) }
    }

    private var uploadPlace: Capability?

    /// Makes options; each has a default.
    public init(
        metadata: [String: String] = [:], headers: [String: String] = [:], verification: Verification = .size,
        creation: CreationMode = .automatic, chunkSize: Int64? = nil, parallel: Int = 1,
        overwrite: OverwritePolicy = .never, uploadURL: String? = nil, expectedChecksum: String? = nil, settings: [String: String] = [:]
    ) {
        self.metadata = metadata
        self.headers = headers
        self.verification = verification
        self.creation = creation
        self.chunkSize = chunkSize
        self.parallel = parallel
        self.overwrite = overwrite
        self.expectedChecksum = expectedChecksum
        ownSettings = NamedCapabilities(settings)
        uploadPlace = uploadURL.map(Capability.init)
    }
}

/// How it is made sure that what arrived is what was sent.
public enum Verification: String, Hashable, Sendable, Codable, CaseIterable {
    /// The other end's word that it has everything is enough.
    case none
    /// The sizes are compared.
    case size
    /// Checksums of the content are compared, by whatever means the transport and the server have; where they have none, the transfer fails
    /// before its first byte.
    case checksum
}

/// How a file is made at a server that names it itself.
public enum CreationMode: String, Hashable, Sendable, Codable, CaseIterable {
    /// With as few requests as the server allows: a small file goes along with the request that makes it. If the answer to that is lost, one
    /// complete copy can be left at the server.
    case automatic
    /// By a request of its own, without content. If the answer to that is lost, one empty file can be left at the server.
    case separate
}
