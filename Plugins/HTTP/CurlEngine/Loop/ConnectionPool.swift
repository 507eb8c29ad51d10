import CCurl
import TransferCore

/// The key of a connection pool: the connection options, including secrets, but without the timeout. Requests share connections only if
/// their keys are equal.
///
/// libcurl itself compares most options, but not all. In version 7.88, a request without an interface reuses a connection that is bound to
/// an interface, a request for HTTP/2 reuses an HTTP/1.1 connection, and the private key of a client certificate is not compared.
struct ConnectionKey: Hashable {
    private let texts: [String?]
    private let pinnedPublicKeys: [String]
    private let proxy: Proxy.Choice
    private let proxyExceptions: [String]?
    private let addressFamily: ConnectionOptions.AddressFamily
    private let httpVersion: ConnectionOptions.HTTPVersion
    private let isVerified: Bool

    init(_ options: ConnectionOptions) {
        let certificate = options.clientCertificate
        texts = [
            options.certificateAuthorityFile, certificate?.certificateFile, certificate?.keyFile, certificate?.passphrase?.reveal(),
            options.proxy.userName, options.proxy.password?.reveal(), options.localInterface,
        ]
        pinnedPublicKeys = options.pinnedPublicKeys
        proxy = options.proxy.choice
        proxyExceptions = options.proxy.exceptions
        addressFamily = options.addressFamily
        httpVersion = options.httpVersion
        isVerified = options.verification.isRequired
    }
}

/// Connections and TLS sessions that requests with the same options share. Used only on the thread of ``CurlLoop``.
@safe final class ConnectionPool {
    /// libcurl's share object, which owns the connections. Freeing it closes them.
    let share: UnsafeMutableRawPointer
    /// The value of the use counter when the pool was last used. The pool with the lowest value is the least recently used.
    fileprivate var lastUse: UInt64 = 0
    /// The number of transfers that use the pool.
    fileprivate var users = 0

    init() throws(CurlEngineError) {
        guard let share = unsafe curl_share_init() else {
            throw CurlEngineError(.outOfResources, "This machine is out of memory.")
        }
        unsafe self.share = unsafe share
        // Only one thread uses the pool, so no lock functions are needed (CURLSHOPT_LOCKFUNC(3)).
        unsafe ccurl_share_setopt_data(share, CURL_LOCK_DATA_CONNECT)
        unsafe ccurl_share_setopt_data(share, CURL_LOCK_DATA_SSL_SESSION)
    }

    deinit {
        unsafe curl_share_cleanup(share)
    }
}

/// The connection pools of one loop.
struct ConnectionPools {
    /// The maximum number of unused pools. Beyond this number, the least recently used pool is dropped with its connections.
    static let maximumIdle = 8

    private var pools: [ConnectionKey: ConnectionPool] = [:]
    private var uses: UInt64 = 0

    /// Returns the pool for a key. After use, give the pool back with ``giveBack(_:)``.
    mutating func take(_ key: ConnectionKey) throws(CurlEngineError) -> ConnectionPool {
        let pool: ConnectionPool
        if let existing = pools[key] { pool = existing } else { pool = try ConnectionPool() }
        pools[key] = pool
        uses += 1
        pool.lastUse = uses
        pool.users += 1
        return pool
    }

    /// Ends a transfer's use of a pool. The transfer's handle must no longer use the pool.
    mutating func giveBack(_ pool: ConnectionPool) {
        pool.users -= 1
        let idle = pools.filter { $0.value.users == 0 }
        guard idle.count > Self.maximumIdle, let oldest = idle.min(by: { $0.value.lastUse < $1.value.lastUse }) else { return }
        pools[oldest.key] = nil
    }

    mutating func removeAll() {
        pools.removeAll()
    }
}
