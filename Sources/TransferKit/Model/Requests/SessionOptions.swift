public import TransferCore

/// Options of a session.
public struct SessionOptions: Hashable, Sendable, Codable {
    /// The policy for a session in which an item fails permanently.
    public enum ItemFailurePolicy: String, Hashable, Sendable, Codable {
        /// The other items continue. When they have ended, the session fails.
        case `continue`
        /// The session fails as soon as an item fails.
        case failSession
    }

    /// The policy for a file that changed after part of it was sent.
    public enum SourceChangePolicy: String, Hashable, Sendable, Codable {
        /// The file fails. The error describes the change.
        case fail
        /// The file restarts with its new content, at most ``RetryPolicy/maximumAttempts`` times.
        case restart
    }

    /// Names and values sent to the server with each file, in a form that depends on the transport.
    public var metadata: [String: String]

    /// The policy for an item that fails permanently. Default: the other items continue.
    public var onItemFailure: ItemFailurePolicy

    /// When and how often failed attempts are retried.
    public var retry: RetryPolicy

    /// The maximum time during which no byte of an attempt is sent, received or confirmed, more than 0 s. Default: 60 s.
    public var stallTimeout: Duration

    /// The maximum time to wait for the server's response after the last byte of a file or request above 1 MiB was sent, more than 0 s. Applies if it
    /// is longer than ``stallTimeout``. Default: 300 s.
    public var responseTimeout: Duration

    /// The maximum time from the first start of the session until its end, from 1 s to 100 years. Includes all attempts, waits, pauses and restarts
    /// of the process. Default: nil, for no limit.
    ///
    /// When the time has passed, the session fails with the code `deadlineExceeded`, regardless of what it waits for: a retry, a slot, its
    /// account, the network. A session that the app has paused or held fails when it is resumed or released. In a stopped queue, the session
    /// fails when the queue starts.
    ///
    /// After ``ControllableQueue/retry(_:)`` or a repeated run, the time begins again with the next start. An update applies immediately. Changes to
    /// the machine's clock have no effect.
    public var deadline: Duration?

    /// The policy for a file that changed after part of it was sent. Default: the file fails, and the error describes the change.
    public var onSourceChange: SourceChangePolicy

    /// The rate limit of the whole session, in bytes per second, at least 1; nil for no limit.
    public var rateLimit: Int64?

    /// The maximum number of files in flight, 1 to 64. Default: nil, for one file above 1 MiB at a time, or several smaller files. The number of
    /// smaller files adapts to the network and the server, up to 64.
    public var filesInFlight: Int?

    /// How the transfer verifies that the received content equals the sent content. Default: by size. An update affects attempts that begin later.
    public var verification: Verification

    /// How files are created on servers that choose the names of files. Default: with as few requests as the server allows.
    ///
    /// With the default, a lost response can leave an extra complete copy on the server. With ``/TransferCore/CreationMode/separate``, a lost
    /// response can only leave an empty file.
    public var creation: CreationMode

    /// Whether events report the start and the progress of each item: ``QueueEvent/Kind/itemStarted(_:position:)`` and
    /// ``QueueEvent/Kind/itemProgress(_:position:_:)``. Default: false, because a session can have a million items. The ends of items are always
    /// reported.
    public var reportsItemProgress: Bool

    /// Whether the session may run while the network is expensive, according to the app; see ``TransferQueue/setNetworkCondition(_:)``. Default:
    /// true.
    public var allowsExpensiveNetwork: Bool

    /// Headers for each request of HTTP transports. The database contains them unencrypted, so use an endpoint's credentials for secrets.
    public var headers: [String: String]

    /// The maximum size of a chunk in bytes, at least 1. A chunk is the part of an upload that one request sends. Only for transports that send
    /// files in chunks, such as tus. Default: nil, for the endpoint's setting.
    public var chunkSize: Int64?

    /// The number of segments (ranges) of a large file to transfer in parallel, 1 to 64, if the transport and the server support it. Default: 1.
    public var segmentsPerFile: Int

    /// The policy for files that already exist at the destination. Default: the transfer of a file that already exists fails. For an
    /// upload, the effect depends on the transport: SFTP applies the policy; other transports may reject a policy, or leave the decision to
    /// the server.
    public var overwrite: OverwritePolicy

    /// Settings of the session, by name, that override the settings of its account's endpoints. Only settings that the transport allows for sessions
    /// are valid, such as `upload` for plain HTTP.
    ///
    /// The database contains the settings unencrypted. A value can grant access, as a signed URL does, so printed options contain only the names.
    public var settings: [String: String] {
        get { settingCapabilities.values }
        set { settingCapabilities = NamedCapabilities(newValue) }
    }

    private var settingCapabilities: NamedCapabilities

    /// The URL at which the uploads of the session are created, instead of the endpoint's address, for transports that create uploads (tus). Default:
    /// nil, for the endpoint's address. ``TransferItem/creationURL`` takes precedence.
    ///
    /// The endpoint must trust the URL: the URL must have the origin of the endpoint's address, or an origin from the endpoint's setting `origins`.
    /// Attempts skip endpoints that can't use the URL. If the account has only such endpoints, `enqueue` throws an error that names the reason. The
    /// database contains the URL until the session is removed. Logs, errors, events and statuses never contain the URL.
    ///
    /// ```swift
    /// let options = SessionOptions(creationURL: "https://upload.example.com/projects/7/files/")
    /// ```
    public var creationURL: String? {
        get { creationCapability?.text }
        set { creationCapability = newValue.map(Capability.init) }
    }

    private var creationCapability: Capability?

    /// The expected checksum of a download of exactly one file: `sha256:`, `sha512:`, `sha1:` or `md5:`, followed by hexadecimal digits.
    /// Default: nil, for no comparison.
    public var expectedChecksum: String?

    /// A number in the names of the session's part files; nil for no number. Each queue that runs the session must use a new number, because an
    /// earlier queue may still write into the part files with its own number.
    package var partEpoch: Int64?

    /// Creates options. Each option has a default.
    public init(
        metadata: [String: String] = [:], onItemFailure: ItemFailurePolicy = .continue, retry: RetryPolicy = RetryPolicy(),
        stallTimeout: Duration = .seconds(60), responseTimeout: Duration = .seconds(300), deadline: Duration? = nil,
        onSourceChange: SourceChangePolicy = .fail,
        rateLimit: Int64? = nil, filesInFlight: Int? = nil, verification: Verification = .size, creation: CreationMode = .automatic,
        reportsItemProgress: Bool = false, allowsExpensiveNetwork: Bool = true, headers: [String: String] = [:], chunkSize: Int64? = nil,
        segmentsPerFile: Int = 1,
        overwrite: OverwritePolicy = .never, settings: [String: String] = [:], creationURL: String? = nil, expectedChecksum: String? = nil
    ) {
        creationCapability = creationURL.map(Capability.init)
        settingCapabilities = NamedCapabilities(settings)
        self.expectedChecksum = expectedChecksum
        self.headers = headers
        self.chunkSize = chunkSize
        self.segmentsPerFile = segmentsPerFile
        self.overwrite = overwrite
        self.onSourceChange = onSourceChange
        self.rateLimit = rateLimit
        self.filesInFlight = filesInFlight
        self.verification = verification
        self.creation = creation
        self.reportsItemProgress = reportsItemProgress
        self.allowsExpensiveNetwork = allowsExpensiveNetwork
        self.metadata = metadata
        self.onItemFailure = onItemFailure
        self.retry = retry
        self.stallTimeout = stallTimeout
        self.responseTimeout = responseTimeout
        self.deadline = deadline
    }

    /// Decodes options from any version. Options that did not exist in that version get their defaults.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let defaults = SessionOptions()
        self.init(
            metadata: try container.decodeIfPresent([String: String].self, forKey: .metadata) ?? defaults.metadata,
            onItemFailure: try container.decodeIfPresent(ItemFailurePolicy.self, forKey: .onItemFailure) ?? defaults.onItemFailure,
            retry: try container.decodeIfPresent(RetryPolicy.self, forKey: .retry) ?? defaults.retry,
            stallTimeout: try container.decodeIfPresent(Duration.self, forKey: .stallTimeout) ?? defaults.stallTimeout,
            responseTimeout: try container.decodeIfPresent(Duration.self, forKey: .responseTimeout) ?? defaults.responseTimeout,
            deadline: try container.decodeIfPresent(Duration.self, forKey: .deadline),
            onSourceChange: try container.decodeIfPresent(SourceChangePolicy.self, forKey: .onSourceChange) ?? defaults.onSourceChange,
            rateLimit: try container.decodeIfPresent(Int64.self, forKey: .rateLimit),
            filesInFlight: try container.decodeIfPresent(Int.self, forKey: .filesInFlight),
            verification: try container.decodeIfPresent(Verification.self, forKey: .verification) ?? defaults.verification,
            creation: try container.decodeIfPresent(CreationMode.self, forKey: .creation) ?? defaults.creation,
            reportsItemProgress: try container.decodeIfPresent(Bool.self, forKey: .reportsItemProgress) ?? false,
            allowsExpensiveNetwork: try container.decodeIfPresent(Bool.self, forKey: .allowsExpensiveNetwork) ?? true,
            headers: try container.decodeIfPresent([String: String].self, forKey: .headers) ?? defaults.headers,
            chunkSize: try container.decodeIfPresent(Int64.self, forKey: .chunkSize),
            segmentsPerFile: try container.decodeIfPresent(Int.self, forKey: .segmentsPerFile) ?? defaults.segmentsPerFile,
            overwrite: try container.decodeIfPresent(OverwritePolicy.self, forKey: .overwrite) ?? defaults.overwrite,
            settings: try container.decodeIfPresent([String: String].self, forKey: .settingCapabilities) ?? defaults.settings,
            creationURL: try container.decodeIfPresent(String.self, forKey: .creationCapability),
            expectedChecksum: try container.decodeIfPresent(String.self, forKey: .expectedChecksum))
        partEpoch = try container.decodeIfPresent(Int64.self, forKey: .partEpoch)
    }

    private enum CodingKeys: String, CodingKey {
        case metadata, onItemFailure, retry, stallTimeout, responseTimeout, deadline, onSourceChange, rateLimit, filesInFlight, verification
        case creation, reportsItemProgress, allowsExpensiveNetwork, headers, chunkSize, overwrite, expectedChecksum, partEpoch
        // Existing databases use these names.
        case segmentsPerFile = "parallel"
        case settingCapabilities = "settings"
        case creationCapability = "creationURL"
    }
}

extension SessionOptions {
    private static let longestDeadline = Duration.seconds(3_155_760_000)

    static func exceeded(_ deadline: Duration) -> TransferError {
        TransferError(
            .permanent, .deadlineExceeded,
            "The session did not end within its deadline of \(deadline.inSeconds) s. A retry gives it the same time again. "
                + "Unfinished content, such as the part files of downloads, stays until the session is removed.")
    }

    func validate() throws(QueueError) {
        guard (1...64).contains(segmentsPerFile) else {
            throw QueueError(.invalidRequest, "The number of parallel segments of a file must be from 1 to 64, not \(segmentsPerFile).")
        }
        guard chunkSize.map({ $0 >= 1 }) ?? true else {
            throw QueueError(.invalidRequest, "The chunk size must be at least 1 byte. Omit it for the endpoint's setting.")
        }
        guard rateLimit.map({ $0 >= 1 }) ?? true else {
            throw QueueError(.invalidRequest, "A rate limit must be at least 1 byte per second. Omit it for no limit.")
        }
        guard filesInFlight.map({ (1...64).contains($0) }) ?? true else {
            throw QueueError(.invalidRequest, "The number of files in flight must be from 1 to 64, not \(filesInFlight ?? 0).")
        }
        guard stallTimeout > .zero, responseTimeout > .zero else {
            throw QueueError(.invalidRequest, "The stall and response timeouts of a session must be longer than 0 s.")
        }
        guard max(stallTimeout, responseTimeout) <= .seconds(Int64.max) else {
            throw QueueError(.invalidRequest, "The stall and response timeouts of a session must be at most \(Int64.max) s.")
        }
        guard deadline.map({ (.seconds(1)...Self.longestDeadline).contains($0) }) ?? true else {
            throw QueueError(.invalidRequest, "The deadline of a session must be from 1 s to 100 years. Omit it for no limit.")
        }
        if let expectedChecksum {
            let parts = expectedChecksum.split(separator: ":", omittingEmptySubsequences: false)
            let digits = ["sha256": 64, "sha512": 128, "sha1": 40, "md5": 32]
            guard parts.count == 2, digits[String(parts[0])] == parts[1].utf8.count, parts[1].allSatisfy({ $0.isASCII && $0.isHexDigit })
            else {
                throw QueueError(
                    .invalidRequest,
                    "A checksum must be sha256:, sha512:, sha1: or md5:, followed by 64, 128, 40 or 32 hexadecimal digits.")
            }
        }
        try retry.validate()
        for (name, value) in headers { try Self.validate(header: name, value) }
    }

    /// Checks a header (RFC 9110, sections 5.1 and 5.5). Without the check, a name or a value could form a second header.
    private static func validate(header name: String, _ value: String) throws(QueueError) {
        guard !name.isEmpty,
            name.unicodeScalars.allSatisfy({
                $0.isASCII && ($0.properties.isAlphabetic || "!#$%&'*+-.^_`|~0123456789".unicodeScalars.contains($0))
            })
        else {
            throw QueueError(
                .invalidRequest, "\(name.debugDescription) is not a valid header name. Use only letters, digits and hyphens.")
        }
        guard !["authorization", "proxy-authorization", "cookie"].contains(name.lowercased()) else {
            throw QueueError(
                .invalidRequest, "The header \(name) can't be set, because its secret would be stored. Use the endpoint's credentials.")
        }
        guard !value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw QueueError(.invalidRequest, "The value of the header \(name) contains a line break or another control character.")
        }
    }
}
