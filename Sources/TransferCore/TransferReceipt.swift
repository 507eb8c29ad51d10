public import SystemPackage

/// What a transport says of a file that it moved completely.
public struct TransferReceipt: Hashable, Sendable, Codable {
    /// How many bytes the file has at its destination.
    public var bytes: Int64

    /// Where the file is now, without credentials; nil if the transport can't tell.
    public var remoteURL: String?

    /// The checksum that both ends agreed on, as `algorithm:hex`; nil if none was compared.
    public var checksum: String?

    /// Where a download is now, if that is not where it was to go, as something was there, or the server gave it a name; nil otherwise.
    public var localPath: FilePath? {
        get { localPathBytes.map { FilePath(bytes: $0) } }
        set { localPathBytes = newValue?.bytes }
    }

    private var localPathBytes: [UInt8]?

    /// What the server answered when it had the whole file, for transports whose servers say more than that; nil otherwise.
    public var answer: ServerAnswer?

    /// What somebody should know although the file was moved, each a sentence: what went wrong beside its content, or what can't be seen from here.
    public var warnings: [String]

    /// What is still at the other end and the file does not need, as it could not be removed yet; nil if there is nothing. Never the file itself:
    /// the queue has the transport discard it later, over restarts, and does not store it with the receipt.
    public var leftovers: Checkpoint?

    private enum CodingKeys: String, CodingKey {
        case bytes, remoteURL, checksum, localPathBytes, answer, warnings
    }

    /// Makes a receipt.
    public init(
        bytes: Int64, remoteURL: String? = nil, checksum: String? = nil, localPath: FilePath? = nil, answer: ServerAnswer? = nil,
        warnings: [String] = []
    ) {
        self.bytes = bytes
        self.remoteURL = remoteURL
        self.checksum = checksum
        self.answer = answer
        self.warnings = warnings
        localPathBytes = localPath?.bytes
    }
}
