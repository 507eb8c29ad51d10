public import SystemPackage

/// The address, the access and the limits of a ``WebServer``.
public struct WebServerOptions: Sendable {
    /// The address to listen on: an IP address or a host name. Default: 127.0.0.1, which only programs on this machine can reach.
    public var address = "127.0.0.1"
    /// The port to listen on; 0 for any free port. Default: 8420.
    public var port: UInt16 = 8_420
    /// The host names that clients use for the server, in addition to loopback names and ``address``. The server rejects requests for other hosts.
    public var hostNames: [String] = []
    /// Whether the server rejects all changes, regardless of the client's token.
    public var isReadOnly = false
    /// The TLS certificate and key as PEM files; nil for HTTP without TLS, which is possible only on a loopback address.
    public var certificate: Certificate?
    /// The path of the program `transferq`, which the server runs to check accounts and the storage folder. Nil to reject requests for checks. The
    /// program reads credentials from the environment of the server.
    public var program: FilePath?
    package var limits = WebLimits()

    /// The files of a TLS certificate.
    public struct Certificate: Sendable {
        /// The certificate chain as a PEM file, with the server's certificate first.
        public var chain: FilePath
        /// The private key as a PEM file.
        public var key: FilePath

        /// Creates a certificate from two PEM files.
        public init(chain: FilePath, key: FilePath) {
            self.chain = chain
            self.key = key
        }
    }

    /// Creates options with default values.
    public init() {}

    /// Creates options for an address and a port, such as `127.0.0.1:8420` or `[::1]:0`; nil if one of them is invalid.
    package init?(listeningOn text: String) {
        guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
        let address = text[..<colon]
        self.port = port
        if address.hasPrefix("["), address.hasSuffix("]") {
            self.address = String(address.dropFirst().dropLast())
        } else {
            guard !address.isEmpty, !address.contains(":") else { return nil }
            self.address = String(address)
        }
    }
}

/// The limits for clients of a web server.
package struct WebLimits: Sendable {
    /// The maximum size of a request's body, in bytes.
    package var bodySize = 1 << 20
    /// The maximum size of all headers of a request, in bytes.
    package var headerSize = 16 << 10
    /// The maximum number of requests in a burst, from all clients with a valid token or cookie together. All other clients together get a quarter.
    package var requestBurst = 400.0
    /// The sustained number of requests per second, from all clients with a valid token or cookie together. All other clients together get a
    /// quarter.
    package var requestsPerSecond = 200.0
    /// The maximum number of clients that receive events at the same time.
    package var eventClients = 64
    /// The maximum number of connections.
    package var connections = 256
    /// The time within which the headers of a connection's first request must arrive, in seconds.
    package var headTime: Int64 = 10
    /// The time within which the body of a request must arrive, in seconds.
    package var bodyTime: Int64 = 30
    /// The time for which a connection can stay open between two requests, in seconds.
    package var idleTime: Int64 = 75
    /// The time for which a client can leave a response unread, in milliseconds.
    package var writeTime: Int64 = 30_000
    /// The interval between comments in an event stream. The comments show that the server is still running.
    package var heartbeat = Duration.seconds(15)
    /// The minimum number of recent events that the server keeps for clients that reconnect. The server keeps up to twice as many.
    package var recentEvents = 4_096
    /// The time for which requests share the result of one read from the queue, unless the queue reports a change.
    package var snapshotAge = Duration.milliseconds(500)
    /// The maximum number of sessions that the server examines for a request with a filter.
    package var scannedSessions = 20_000

    package init() {}
}

/// The reason why a web server can't start.
public struct WebServerError: Error, CustomStringConvertible, Sendable {
    /// A human-readable message.
    public let description: String

    init(_ description: String) { self.description = description }
}
