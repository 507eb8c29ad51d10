public import TransferCore
import TransportHTTP
import TransportSFTP
public import TransportSupport
import TransportTUS

/// A transport of the command-line program, with the schemes and options of its endpoints.
public struct RegisteredTransport: Sendable {
    /// The transport's ID.
    public var id: TransportID

    /// The URL schemes of this transport on the command line, each with the scheme of the endpoint's address.
    public var schemes: [String: String]

    /// A group of command-line options that a transport may support.
    public enum EndpointOption: CaseIterable, Sendable {
        /// A bearer token.
        case token
        /// A password.
        case password
        /// The passphrase of encrypted keys.
        case passphrase
        /// The certificates of trusted authorities.
        case authorities
        /// A client certificate and its key.
        case clientCertificate
        /// The password of a proxy.
        case proxy
        /// Request headers.
        case headers
        /// SSH keys, known hosts and the host key policy.
        case keys
    }

    /// The supported options. Endpoints of this transport ignore all others.
    public var options: Set<EndpointOption>

    /// The settings of its endpoints and sessions, for the help of `--setting`.
    public var settings: [SettingDescription]

    /// Creates the transport. Called once per queue.
    public var make: @Sendable () -> any Transport

    /// The names and versions of the libraries it uses, for `transferq doctor`.
    public var libraries: @Sendable () -> [String]

    /// Checks an endpoint of this transport without connecting. The error's message is shown to the user.
    public var validate: @Sendable (Endpoint) throws(TransferError) -> Void

    /// Returns what happens to two files with the same remote name at an endpoint, given a session's options.
    public var nameClash: @Sendable (AttemptOptions, Endpoint) -> NameClash

    /// Whether the transport can download whole folders: a `FolderListing`.
    public var listsFolders: Bool

    /// Checks a session's options against an endpoint of this transport without connecting. The error's message is shown to the user.
    public var validateSession: @Sendable (AttemptOptions, TransferDirection, Endpoint) throws(TransferError) -> Void

    /// Describes a transport.
    public init(
        id: TransportID, schemes: [String: String], options: Set<EndpointOption> = Set(EndpointOption.allCases),
        settings: [SettingDescription] = [],
        make: @escaping @Sendable () -> any Transport,
        libraries: @escaping @Sendable () -> [String] = { [] },
        validate: @escaping @Sendable (Endpoint) throws(TransferError) -> Void = { _ throws(TransferError) in },
        nameClash: @escaping @Sendable (AttemptOptions, Endpoint) -> NameClash = { _, _ in .keptApart },
        listsFolders: Bool = true,
        validateSession: @escaping @Sendable (AttemptOptions, TransferDirection, Endpoint) throws(TransferError) -> Void = {
            (_, _, _) throws(TransferError) in
        }
    ) {
        self.id = id
        self.schemes = schemes
        self.options = options
        self.settings = settings
        self.make = make
        self.libraries = libraries
        self.validate = validate
        self.nameClash = nameClash
        self.listsFolders = listsFolders
        self.validateSession = validateSession
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

    /// The built-in transports: tus, SFTP and plain HTTP.
    public static let builtIn = RegisteredTransports([
        RegisteredTransport(
            id: .tus, schemes: ["tus+https": "https", "tus+http": "http", "https": "https", "http": "http"],
            options: httpOptions, settings: TUSTransport.settings, make: { TUSTransport() }, libraries: { TUSTransport.libraries },
            validate: { endpoint throws(TransferError) in try TUSTransport.validate(endpoint) },
            listsFolders: false,
            validateSession: { (options, direction, endpoint) throws(TransferError) in
                try TUSTransport.validate(options, for: direction, at: endpoint)
            }),
        RegisteredTransport(
            id: .sftp, schemes: ["sftp": "sftp"], options: [.password, .passphrase, .keys, .proxy],
            settings: SFTPTransport.settings, make: { SFTPTransport() }, libraries: { SFTPTransport.libraries },
            validate: { endpoint throws(TransferError) in try SFTPTransport.validate(endpoint) },
            nameClash: { options, _ in SFTPTransport.nameClash(options) },
            validateSession: { (options, _, _) throws(TransferError) in try SFTPTransport.validate(options) }),
        RegisteredTransport(
            id: .http, schemes: plainHTTPSchemes, options: httpOptions, settings: HTTPTransport.settings,
            make: { HTTPTransport() }, libraries: { HTTPTransport.libraries },
            validate: { endpoint throws(TransferError) in try HTTPTransport.validate(endpoint) },
            nameClash: { options, endpoint in HTTPTransport.nameClash(options, at: endpoint) }, listsFolders: false,
            validateSession: { (options, direction, endpoint) throws(TransferError) in
                try HTTPTransport.validate(options, for: direction, at: endpoint)
            }),
    ])

    private static let httpOptions: Set<RegisteredTransport.EndpointOption> = [
        .token, .password, .authorities, .clientCertificate, .proxy, .headers,
    ]

    /// These schemes select the upload method, so they stay in the address.
    private static let plainHTTPSchemes = Dictionary(
        uniqueKeysWithValues: ["put", "form", "get"].flatMap { ["https+\($0)", "http+\($0)"] }.map { ($0, $0) })

    /// The names of the settings for endpoints that have no option of their own, one line for each transport.
    var endpointSettings: String { list { $0.isForEndpoints && NamedSetting.takes($0.name) } }

    /// The names of the settings for sessions, one line for each transport that has some.
    var sessionSettings: String { list(\.isForSessions) }

    private func list(_ isListed: (SettingDescription) -> Bool) -> String {
        all.compactMap { transport in
            let names = transport.settings.filter(isListed).map(\.name)
            return names.isEmpty ? nil : "Settings of \(transport.id): \(names.joined(separator: ", "))."
        }.joined(separator: "\n")
    }

    /// All known schemes of endpoints in alphabetical order.
    var schemes: [String] { all.flatMap(\.schemes.keys).sorted() }

    func make() -> [any Transport] { all.map { $0.make() } }

    /// The options that endpoints of a transport support.
    func options(of transport: TransportID) -> Set<RegisteredTransport.EndpointOption> {
        all.first { $0.id == transport }?.options ?? []
    }

    /// Returns what happens to two files with the same remote name at an endpoint.
    func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
        all.first { $0.id == endpoint.transport }?.nameClash(options, endpoint) ?? .keptApart
    }

    /// Checks a session's options with the rules of the endpoint's transport.
    func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try all.first { $0.id == endpoint.transport }?.validateSession(options, direction, endpoint)
    }

    /// Whether a transport can download whole folders. True for unknown transports.
    func listsFolders(_ transport: TransportID) -> Bool { all.first { $0.id == transport }?.listsFolders ?? true }

    /// Checks an endpoint with the rules of its transport.
    func validate(_ endpoint: Endpoint) throws(TransferError) {
        try all.first { $0.id == endpoint.transport }?.validate(endpoint)
    }
}
