public import TransferCore
import TransportHTTP
import TransportSFTP
import TransportTUS

/// A transport that the program has, and how its endpoints are written on the command line.
public struct RegisteredTransport: Sendable {
    /// The transport's ID.
    public var id: TransportID

    /// The schemes of the URLs that mean this transport, each with the scheme that the endpoint's address has instead.
    public var schemes: [String: String]

    /// What options of the command line are for.
    public enum EndpointOption: CaseIterable, Sendable {
        /// A bearer token.
        case token
        /// A password.
        case password
        /// What keys are encrypted with.
        case passphrase
        /// Certificates of authorities.
        case authorities
        /// A certificate that shows a server who we are, and its key.
        case clientCertificate
        /// The password for a proxy.
        case proxy
        /// Headers of requests.
        case headers
        /// Files with keys, servers that are known, and what else SSH needs to know.
        case keys
    }

    /// What its endpoints have a use for; other options are not given to them.
    public var options: Set<EndpointOption>

    /// Makes the transport, once per queue.
    public var make: @Sendable () -> any Transport

    /// The libraries that it stands on, each a name and a version, for a diagnosis.
    public var libraries: @Sendable () -> [String]

    /// Checks an endpoint of this transport without asking anybody; throws what is wrong with it, for a person.
    public var validate: @Sendable (Endpoint) throws(TransferError) -> Void

    /// Decides what happens to two files that have one remote name at an endpoint, by what a session asks for.
    public var nameClash: @Sendable (AttemptOptions, Endpoint) -> NameClash

    /// Whether it can receive whole folders: a `FolderListing`.
    public var listsFolders: Bool

    /// Checks what a session wants of an endpoint of this transport without asking anybody; throws what can't be had there, for a person.
    public var validateSession: @Sendable (AttemptOptions, TransferDirection, Endpoint) throws(TransferError) -> Void

    /// Makes an entry.
    public init(
        id: TransportID, schemes: [String: String], options: Set<EndpointOption> = Set(EndpointOption.allCases),
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
        self.make = make
        self.libraries = libraries
        self.validate = validate
        self.nameClash = nameClash
        self.listsFolders = listsFolders
        self.validateSession = validateSession
    }
}

/// The transports that the program has.
public struct RegisteredTransports: Sendable {
    /// All of them.
    public var all: [RegisteredTransport]

    /// Makes a list of transports.
    public init(_ all: [RegisteredTransport]) {
        self.all = all
    }

    /// What this program comes with.
    public static let builtIn = RegisteredTransports([
        RegisteredTransport(
            id: .tus, schemes: ["tus+https": "https", "tus+http": "http", "https": "https", "http": "http"],
            options: httpOptions, make: { TUSTransport() }, libraries: { TUSTransport.libraries },
            validate: { endpoint throws(TransferError) in try TUSTransport.validate(endpoint) },
            listsFolders: false,
            validateSession: { (options, direction, endpoint) throws(TransferError) in
                try TUSTransport.validate(options, for: direction, at: endpoint)
            }),
        RegisteredTransport(
            id: .sftp, schemes: ["sftp": "sftp"], options: [.password, .passphrase, .keys, .proxy], make: { SFTPTransport() },
            libraries: { SFTPTransport.libraries },
            validate: { endpoint throws(TransferError) in try SFTPTransport.validate(endpoint) },
            nameClash: { options, _ in SFTPTransport.nameClash(options) },
            validateSession: { (options, _, _) throws(TransferError) in try SFTPTransport.validate(options) }),
        RegisteredTransport(
            id: .http, schemes: plainHTTPSchemes, options: httpOptions, make: { HTTPTransport() },
            libraries: { HTTPTransport.libraries },
            validate: { endpoint throws(TransferError) in try HTTPTransport.validate(endpoint) },
            nameClash: { options, endpoint in HTTPTransport.nameClash(options, at: endpoint) }, listsFolders: false,
            validateSession: { (options, direction, endpoint) throws(TransferError) in
                try HTTPTransport.validate(options, for: direction, at: endpoint)
            }),
    ])

    private static let httpOptions: Set<RegisteredTransport.EndpointOption> = [
        .token, .password, .authorities, .clientCertificate, .proxy, .headers,
    ]

    /// They say how files are uploaded, so that they stay in the address.
    private static let plainHTTPSchemes = Dictionary(
        uniqueKeysWithValues: ["put", "form", "get"].flatMap { ["https+\($0)", "http+\($0)"] }.map { ($0, $0) })

    /// The schemes that endpoints can have, in alphabetical order.
    var schemes: [String] { all.flatMap(\.schemes.keys).sorted() }

    func make() -> [any Transport] { all.map { $0.make() } }

    /// What the endpoints of a transport have a use for.
    func options(of transport: TransportID) -> Set<RegisteredTransport.EndpointOption> {
        all.first { $0.id == transport }?.options ?? []
    }

    /// Decides what happens to two files that have one remote name at an endpoint.
    func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
        all.first { $0.id == endpoint.transport }?.nameClash(options, endpoint) ?? .keptApart
    }

    /// Checks what a session wants of an endpoint as its transport does.
    func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try all.first { $0.id == endpoint.transport }?.validateSession(options, direction, endpoint)
    }

    /// Whether a transport can receive whole folders, as one that is not known here may.
    func listsFolders(_ transport: TransportID) -> Bool { all.first { $0.id == transport }?.listsFolders ?? true }

    /// Checks an endpoint as its transport does.
    func validate(_ endpoint: Endpoint) throws(TransferError) {
        try all.first { $0.id == endpoint.transport }?.validate(endpoint)
    }
}
