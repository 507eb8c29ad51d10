public import SystemPackage

/// The result of a completed transfer of one file.
public struct TransferReceipt: Hashable, Sendable, Codable {
    /// The size of the file at its destination, in bytes.
    public var bytes: Int64

    /// The URL of the remote file, without credentials; nil if unknown.
    public var remoteURL: String?

    /// The checksum on which both ends agree, as `algorithm:hex`; nil if no checksums were compared.
    public var checksum: String?

    /// The path of the downloaded file if it differs from the requested destination, because a file existed there or the server chose the name.
    /// Otherwise nil.
    public var localPath: FilePath? {
        get { localPathBytes.map { FilePath(bytes: $0) } }
        set { localPathBytes = newValue?.bytes }
    }

    private var localPathBytes: [UInt8]?

    /// The beginning of the server's response to the completed upload, if the transport keeps it; otherwise nil.
    public var serverResponse: ServerResponse?

    /// Warnings, one sentence each: unverified properties, or problems that don't affect the content.
    public var warnings: [String]

    /// Unneeded remote content that could not be removed yet, or nil. Never the file itself.
    ///
    /// The queue later calls the transport to remove this content (``PartialDiscarding``), even after a restart of the process. The stored receipt
    /// does not contain this property.
    public var leftovers: Checkpoint?

    private enum CodingKeys: String, CodingKey {
        case bytes, remoteURL, checksum, localPathBytes, warnings
        // The name in stored receipts.
        case serverResponse = "answer"
    }

    /// Creates a receipt.
    public init(
        bytes: Int64, remoteURL: String? = nil, checksum: String? = nil, localPath: FilePath? = nil, serverResponse: ServerResponse? = nil,
        warnings: [String] = []
    ) {
        self.bytes = bytes
        self.remoteURL = remoteURL
        self.checksum = checksum
        self.serverResponse = serverResponse
        self.warnings = warnings
        localPathBytes = localPath?.bytes
    }
}
