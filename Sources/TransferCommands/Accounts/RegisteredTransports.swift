public import TransferCore
import TransportHTTP
import TransportSFTP
public import TransportSupport
import TransportTUS

/// A transport of the command-line program, with the schemes and options of its endpoints.
///
/// The program uses the transport's capabilities, such as ``/TransferCore/EndpointValidating``, ``/TransferCore/EndpointChecking`` and
/// ``/TransferCore/FolderListing``. The properties of this type contain the information that only the command line needs.
///
/// ```swift
/// var transports = RegisteredTransports.builtIn
/// transports.all.append(RegisteredTransport(FolderTransport(), schemes: ["folder": "folder"], options: []))
/// await CommandLineProgram.main(transports: transports)
/// ```
public struct RegisteredTransport: Sendable {
    /// The transport. Each queue and each check creates its own instance with ``/TransferCore/Transport/makeInstance()``.
    public var transport: any Transport

    /// The transport's ID.
    public var id: TransportID { transport.id }

    /// The URL schemes that the command line accepts for this transport, mapped to the schemes of the stored addresses.
    public var schemes: [String: String]

    /// The endpoint settings that each scheme implies, by scheme. An explicit setting takes precedence.
    public var schemeSettings: [String: [String: String]]

    /// A group of command-line options that a transport can support.
    public enum EndpointOption: CaseIterable, Sendable {
        /// A bearer token.
        case token
        /// A password.
        case password
        /// The passphrase of encrypted SSH keys.
        case passphrase
        /// The certificates of trusted authorities.
        case authorities
        /// A client certificate, its key, and the key's passphrase.
        case clientCertificate
        /// The password of a proxy.
        case proxy
        /// Request headers.
        case headers
        /// SSH keys, known hosts and the host key policy.
        case keys
    }

    /// The supported groups of options. Other options have no effect on endpoints of this transport.
    public var options: Set<EndpointOption>

    /// Whether a password requires a user in the endpoint's URL.
    public var passwordNeedsUser: Bool

    /// The settings of the transport's endpoints and sessions, for the help of `--setting`.
    public var settings: [SettingDescription]

    /// The effect of `--overwrite` on uploads.
    public enum Overwriting: Hashable, Sendable {
        /// The transport applies the policy.
        case byPolicy
        /// The server stores each file as a new upload. It never rejects, replaces or compares files by name.
        case never
        /// The server decides whether to replace a file.
        case byServer
    }

    /// The options of `transferq upload` that affect uploads of this transport.
    public struct UploadOptions: Hashable, Sendable {
        /// The effect of `--overwrite`.
        public var overwriting: Overwriting

        /// Whether `--chunk` limits the size of a request.
        public var hasChunks: Bool

        /// Whether `--parallel` uses several segments for one file.
        public var hasSegments: Bool

        /// Creates a description of the effective options. By default, all options have an effect.
        public init(overwriting: Overwriting = .byPolicy, hasChunks: Bool = true, hasSegments: Bool = true) {
            self.overwriting = overwriting
            self.hasChunks = hasChunks
            self.hasSegments = hasSegments
        }
    }

    /// The options of `transferq upload` that affect uploads. The command warns about options without effect, and rejects overwrite policies that
    /// the account's endpoints can't apply.
    public var uploadOptions: UploadOptions

    /// The names and versions of the transport's libraries, such as `libcurl/7.88.1`, for `transferq --version` and `transferq doctor`.
    /// A transport from another package can list its own name and version first.
    public var libraries: [String]

    /// Creates a description of a transport.
    ///
    /// - Parameters:
    ///   - transport: The transport.
    ///   - schemes: The URL schemes of the command line, mapped to the schemes of the stored addresses.
    ///   - options: The supported groups of options; all by default.
    ///   - passwordNeedsUser: Whether a password requires a user in the endpoint's URL.
    ///   - settings: The settings of the transport's endpoints and sessions.
    ///   - uploadOptions: The options of `transferq upload` that affect uploads; all by default.
    ///   - libraries: The names and versions of the transport's libraries.
    ///   - schemeSettings: The endpoint settings that each scheme implies, by scheme.
    public init(
        _ transport: any Transport, schemes: [String: String], options: Set<EndpointOption> = Set(EndpointOption.allCases),
        passwordNeedsUser: Bool = true, settings: [SettingDescription] = [], uploadOptions: UploadOptions = UploadOptions(),
        libraries: [String] = [], schemeSettings: [String: [String: String]] = [:]
    ) {
        self.transport = transport
        self.schemes = schemes
        self.schemeSettings = schemeSettings
        self.options = options
        self.passwordNeedsUser = passwordNeedsUser
        self.settings = settings
        self.uploadOptions = uploadOptions
        self.libraries = libraries
    }
}

/// The transports of the command-line program.
public struct RegisteredTransports: Sendable {
    /// The transports in the order of registration.
    public var all: [RegisteredTransport]

    /// Creates a list of transports.
    public init(_ all: [RegisteredTransport]) {
        self.all = all
    }

    /// The built-in transports: tus with the IETF's resumable uploads, SFTP, and plain HTTP.
    public static let builtIn = RegisteredTransports([
        RegisteredTransport(
            TUSTransport(),
            schemes: [
                "tus+https": "https", "tus+http": "http", "https": "https", "http": "http", "rufh+https": "https", "rufh+http": "http",
            ], options: httpOptions, settings: TUSTransport.settings, uploadOptions: .init(overwriting: .never),
            libraries: TUSTransport.libraries,
            schemeSettings: ["rufh+https": ["dialect": "ietf"], "rufh+http": ["dialect": "ietf"]]),
        RegisteredTransport(
            SFTPTransport(), schemes: ["sftp": "sftp"], options: [.password, .passphrase, .keys, .proxy], passwordNeedsUser: false,
            settings: SFTPTransport.settings, uploadOptions: .init(hasChunks: false), libraries: SFTPTransport.libraries),
        RegisteredTransport(
            HTTPTransport(), schemes: plainHTTPSchemes, options: httpOptions, settings: HTTPTransport.settings,
            uploadOptions: .init(overwriting: .byServer, hasChunks: false, hasSegments: false), libraries: HTTPTransport.libraries),
    ])

    private static let httpOptions: Set<RegisteredTransport.EndpointOption> = [
        .token, .password, .authorities, .clientCertificate, .proxy, .headers,
    ]

    /// The scheme selects the kind of request, so the stored address keeps the scheme.
    private static let plainHTTPSchemes = Dictionary(
        uniqueKeysWithValues: ["put", "post", "form", "get"].flatMap { ["https+\($0)", "http+\($0)"] }.map { ($0, $0) })

    subscript(endpoint: Endpoint) -> RegisteredTransport? { all.first { $0.id == endpoint.transport } }

    /// The names of the endpoint settings that only `--setting` can set, one line for each transport that has such settings.
    var endpointSettings: String { list { $0.isForEndpoints && NamedSetting.accepts($0.name) } }

    var sessionSettings: String { list(\.isForSessions) }

    private func list(_ isListed: (SettingDescription) -> Bool) -> String {
        all.compactMap { transport in
            let names = transport.settings.filter(isListed).map(\.name)
            return names.isEmpty ? nil : "Settings of \(transport.id): \(names.joined(separator: ", "))."
        }.joined(separator: "\n")
    }

    var schemes: [String] { all.flatMap(\.schemes.keys).sorted() }

    /// How an endpoint treats two files with the same remote name: ``/TransferCore/NameClash/bothKept`` if the transport is unknown or lacks the
    /// capability ``/TransferCore/FileNaming``.
    func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
        (self[endpoint]?.transport as? any FileNaming)?.nameClash(options, at: endpoint) ?? .bothKept
    }

    /// Checks a session's options against the rules of the endpoint's transport, without connecting. Accepts unknown transports.
    ///
    /// - Throws: A `TransferError` if the endpoint can't perform a session with these options.
    func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try (self[endpoint]?.transport as? any SessionValidating)?.validate(options, for: direction, at: endpoint)
    }

    /// Checks whether an endpoint can list folders, without connecting. Accepts unknown transports.
    ///
    /// - Throws: A `TransferError` if the endpoint can't list folders.
    func validateListing(at endpoint: Endpoint) throws(TransferError) {
        guard let transport = self[endpoint]?.transport else { return }
        guard let lister = transport as? any FolderListing else {
            throw TransferError(
                .unsupported, .unsupported, "The transport \"\(endpoint.transport)\" can't list folders. Name the files one by one.")
        }
        try lister.validateListing(at: endpoint)
    }

    /// Checks an endpoint against the rules of its transport, without connecting. Accepts unknown transports.
    ///
    /// - Throws: A `TransferError` if the endpoint's address or settings are invalid.
    func validate(_ endpoint: Endpoint) throws(TransferError) {
        try (self[endpoint]?.transport as? any EndpointValidating)?.validate(endpoint)
    }
}
