public import TransferCore
import TransportHTTP
import TransportTUS

/// A transport that the program has, and how its endpoints are written on the command line.
public struct RegisteredTransport: Sendable {
    /// The transport's ID.
    public var id: TransportID

    /// The schemes of the URLs that mean this transport, each with the scheme that the endpoint's address has instead.
    public var schemes: [String: String]

    /// Makes the transport, once per queue.
    public var make: @Sendable () -> any Transport

    /// The libraries that it stands on, each a name and a version, for a diagnosis.
    public var libraries: @Sendable () -> [String]

    /// Checks an endpoint of this transport without asking anybody; throws what is wrong with it, for a person.
    public var validate: @Sendable (Endpoint) throws(TransferError) -> Void

    /// Makes an entry.
    public init(
        id: TransportID, schemes: [String: String], make: @escaping @Sendable () -> any Transport,
        libraries: @escaping @Sendable () -> [String] = { [] },
        validate: @escaping @Sendable (Endpoint) throws(TransferError) -> Void = { _ throws(TransferError) in }
    ) {
        self.id = id
        self.schemes = schemes
        self.make = make
        self.libraries = libraries
        self.validate = validate
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
            id: .tus, schemes: ["tus+https": "https", "tus+http": "http", "https": "https", "http": "http"], make: { TUSTransport() },
            libraries: { TUSTransport.libraries },
            validate: { endpoint throws(TransferError) in try TUSTransport.validate(endpoint) }),
        RegisteredTransport(
            id: .http, schemes: plainHTTPSchemes, make: { HTTPTransport() }, libraries: { HTTPTransport.libraries },
            validate: { endpoint throws(TransferError) in try HTTPTransport.validate(endpoint) }),
    ])

    /// They say how files are uploaded, so that they stay in the address.
    private static let plainHTTPSchemes = Dictionary(
        uniqueKeysWithValues: ["put", "form", "get"].flatMap { ["https+\($0)", "http+\($0)"] }.map { ($0, $0) })

    /// The schemes that endpoints can have, in alphabetical order.
    var schemes: [String] { all.flatMap(\.schemes.keys).sorted() }

    func make() -> [any Transport] { all.map { $0.make() } }

    /// Checks an endpoint as its transport does.
    func validate(_ endpoint: Endpoint) throws(TransferError) {
        try all.first { $0.id == endpoint.transport }?.validate(endpoint)
    }
}
