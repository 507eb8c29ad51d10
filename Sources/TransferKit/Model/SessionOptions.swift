public import TransferCore

/// How a session is run.
public struct SessionOptions: Hashable, Sendable, Codable {
    /// What happens to the rest of a session when one of its items fails for good.
    public enum ItemFailurePolicy: String, Hashable, Sendable, Codable {
        /// The other items go on; the session ends as failed, with the list.
        case `continue`
        /// The session fails at the first.
        case failSession
    }

    /// What happens to a file that is no longer what it was when a part of it was sent.
    public enum SourceChangePolicy: String, Hashable, Sendable, Codable {
        /// The file fails; the error says what changed.
        case fail
        /// It begins anew with the new content.
        case restart
    }

    /// Names and values told to the server with each file, in a form that the transport decides.
    public var metadata: [String: String]

    /// What happens when an item fails for good.
    public var onItemFailure: ItemFailurePolicy

    /// When and how often failed attempts are repeated.
    public var retry: RetryPolicy

    /// How long an attempt may go on with no byte taken by the network and none confirmed. Default: 60 s.
    public var stallTimeout: Duration

    /// How long the server may take to answer after the last byte of a file or request above 1 MiB was sent. Default: 300 s.
    public var responseTimeout: Duration

    /// What happens to a file that changed after a part of it was sent. Default: it fails, and the error says what changed.
    public var onSourceChange: SourceChangePolicy

    /// Bytes per second for the whole session; nil for no limit.
    public var rateLimit: Int64?

    /// How many files may be in flight at once, 1 to 64; nil for one large one, or as many small ones as the transport wants (six, or 64 of SFTP).
    public var filesInFlight: Int?

    /// How it is made sure that what arrived is what was sent. Default: by the size. Live: files that start later see a change.
    public var verification: Verification

    /// How files are made at servers that name them themselves. Default: with as few requests as the server allows, where an answer that is
    /// lost can leave one complete copy at the server; with ``/TransferCore/CreationMode/separate`` it can only leave an empty file.
    public var creation: CreationMode

    /// Whether it may run while the network is expensive, as the app says; see ``TransferQueue/setNetworkCondition(_:)``. Default: yes.
    public var allowsExpensiveNetwork: Bool

    /// Headers that are sent with each request, for transports that speak HTTP. Stored in clear: a secret is named by an endpoint's credentials.
    public var headers: [String: String]

    /// The most bytes in one request, at least 1, for transports that send requests; nil for no limit.
    public var chunkSize: Int64?

    /// Into how many parts a large file is split that move at once, 1 to 64, where the transport and the server can do that. Default: 1.
    public var parallel: Int

    /// What happens to files that are already there: where a download wants to put its own, or, by transports that give files their names at
    /// the server, such as SFTP, where an upload wants to. Default: the transfer of such a file is refused.
    public var overwrite: OverwritePolicy

    /// What the session wants otherwise than its account's endpoints, by the names of their settings: only what a transport lets a session say,
    /// such as how plain HTTP sends files. Stored in clear. A value may let whoever has it write somewhere, as a signed URL does: of what is printed
    /// of these options only the names are a part.
    public var settings: [String: String] {
        get { ownSettings.values }
        set { ownSettings = NamedCapabilities(newValue) }
    }

    private var ownSettings: NamedCapabilities

    /// The checksum that the only file of a download must have, by transports that can compare it: `sha256:` and hexadecimal digits, or
    /// `sha512:`, `sha1:`, `md5:`. Nil for none.
    public var expectedChecksum: String?

    /// Makes options; each has a default.
    public init(
        metadata: [String: String] = [:], onItemFailure: ItemFailurePolicy = .continue, retry: RetryPolicy = RetryPolicy(),
        stallTimeout: Duration = .seconds(60), responseTimeout: Duration = .seconds(300), onSourceChange: SourceChangePolicy = .fail,
        rateLimit: Int64? = nil, filesInFlight: Int? = nil, verification: Verification = .size, creation: CreationMode = .automatic,
        allowsExpensiveNetwork: Bool = true, headers: [String: String] = [:], chunkSize: Int64? = nil, parallel: Int = 1,
        overwrite: OverwritePolicy = .never, settings: [String: String] = [:], expectedChecksum: String? = nil
    ) {
        ownSettings = NamedCapabilities(settings)
        self.expectedChecksum = expectedChecksum
        self.headers = headers
        self.chunkSize = chunkSize
        self.parallel = parallel
        self.overwrite = overwrite
        self.onSourceChange = onSourceChange
        self.rateLimit = rateLimit
        self.filesInFlight = filesInFlight
        self.verification = verification
        self.creation = creation
        self.allowsExpensiveNetwork = allowsExpensiveNetwork
        self.metadata = metadata
        self.onItemFailure = onItemFailure
        self.retry = retry
        self.stallTimeout = stallTimeout
        self.responseTimeout = responseTimeout
    }

    /// Decodes options as any version wrote them: what an earlier one did not know has its default.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let defaults = SessionOptions()
        self.init(
            metadata: try container.decodeIfPresent([String: String].self, forKey: .metadata) ?? defaults.metadata,
            onItemFailure: try container.decodeIfPresent(ItemFailurePolicy.self, forKey: .onItemFailure) ?? defaults.onItemFailure,
            retry: try container.decodeIfPresent(RetryPolicy.self, forKey: .retry) ?? defaults.retry,
            stallTimeout: try container.decodeIfPresent(Duration.self, forKey: .stallTimeout) ?? defaults.stallTimeout,
            responseTimeout: try container.decodeIfPresent(Duration.self, forKey: .responseTimeout) ?? defaults.responseTimeout,
            onSourceChange: try container.decodeIfPresent(SourceChangePolicy.self, forKey: .onSourceChange) ?? defaults.onSourceChange,
            rateLimit: try container.decodeIfPresent(Int64.self, forKey: .rateLimit),
            filesInFlight: try container.decodeIfPresent(Int.self, forKey: .filesInFlight),
            verification: try container.decodeIfPresent(Verification.self, forKey: .verification) ?? defaults.verification,
            creation: try container.decodeIfPresent(CreationMode.self, forKey: .creation) ?? defaults.creation,
            allowsExpensiveNetwork: try container.decodeIfPresent(Bool.self, forKey: .allowsExpensiveNetwork) ?? true,
            headers: try container.decodeIfPresent([String: String].self, forKey: .headers) ?? defaults.headers,
            chunkSize: try container.decodeIfPresent(Int64.self, forKey: .chunkSize),
            parallel: try container.decodeIfPresent(Int.self, forKey: .parallel) ?? defaults.parallel,
            overwrite: try container.decodeIfPresent(OverwritePolicy.self, forKey: .overwrite) ?? defaults.overwrite,
            settings: try container.decodeIfPresent([String: String].self, forKey: .ownSettings) ?? defaults.settings,
            expectedChecksum: try container.decodeIfPresent(String.self, forKey: .expectedChecksum))
    }

    private enum CodingKeys: String, CodingKey {
        case metadata, onItemFailure, retry, stallTimeout, responseTimeout, onSourceChange, rateLimit, filesInFlight, verification, creation
        case allowsExpensiveNetwork, headers, chunkSize, parallel, overwrite, expectedChecksum
        case ownSettings = "settings"
    }
}

extension SessionOptions {
    /// - Throws: ``QueueError`` with the code `invalidRequest` that names the option.
    func validate() throws(QueueError) {
        guard (1...64).contains(parallel) else {
            throw QueueError(.invalidRequest, "A file moves in 1 to 64 parts at once, not in \(parallel).")
        }
        guard chunkSize.map({ $0 >= 1 }) ?? true else {
            throw QueueError(.invalidRequest, "A request has at least 1 byte; leave the chunk size out for no limit.")
        }
        guard rateLimit.map({ $0 >= 1 }) ?? true else {
            throw QueueError(.invalidRequest, "A rate limit is at least 1 byte per second; leave it out for no limit.")
        }
        guard filesInFlight.map({ (1...64).contains($0) }) ?? true else {
            throw QueueError(.invalidRequest, "1 to 64 files of a session can be in flight at once, not \(filesInFlight ?? 0).")
        }
        guard stallTimeout > .zero, responseTimeout > .zero else {
            throw QueueError(.invalidRequest, "The stall and response timeouts of a session are longer than 0 s.")
        }
        guard max(stallTimeout, responseTimeout) <= .seconds(Int64.max) else {
            throw QueueError(.invalidRequest, "The stall and response timeouts of a session are at most \(Int64.max) s.")
        }
        if let expectedChecksum {
            let parts = expectedChecksum.split(separator: ":", omittingEmptySubsequences: false)
            let digits = ["sha256": 64, "sha512": 128, "sha1": 40, "md5": 32]
            guard parts.count == 2, digits[String(parts[0])] == parts[1].utf8.count, parts[1].allSatisfy({ $0.isASCII && $0.isHexDigit })
            else {
                throw QueueError(
                    .invalidRequest, "The checksum of a file is sha256, sha512, sha1 or md5, a colon, and all of its hexadecimal digits.")
            }
        }
        try retry.validate()
        for (name, value) in headers { try Self.validate(header: name, value) }
    }

    /// RFC 9110, sections 5.1 and 5.5: what else a name or a value held could be a second header.
    private static func validate(header name: String, _ value: String) throws(QueueError) {
        guard !name.isEmpty,
            name.unicodeScalars.allSatisfy({
                $0.isASCII && ($0.properties.isAlphabetic || "!#$%&'*+-.^_`|~0123456789".unicodeScalars.contains($0))
            })
        else {
            throw QueueError(
                .invalidRequest, "\(name.debugDescription) can't be the name of a header: it has letters, digits and hyphens only.")
        }
        guard !["authorization", "proxy-authorization", "cookie"].contains(name.lowercased()) else {
            throw QueueError(
                .invalidRequest, "The header \(name) holds a secret, which is never stored; name it as a credential of the endpoint.")
        }
        guard !value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) else {
            throw QueueError(.invalidRequest, "The value of the header \(name) holds a line break or another control character.")
        }
    }
}
