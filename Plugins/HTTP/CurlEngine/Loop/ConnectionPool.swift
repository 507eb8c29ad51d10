import CCurl
import TransferCore
import TransportSupport

/// The key of a connection pool: the connection options, including a digest of their secrets, but without the timeout. Requests share
/// connections only if their keys are equal.
///
/// An idle pool stays in memory with its key, so the key must not contain the secrets themselves.
///
/// libcurl itself compares most options, but not all. In version 7.88, a request without an interface reuses a connection that is bound to
/// an interface, a request for HTTP/2 reuses an HTTP/1.1 connection, and libcurl does not compare the private keys of client certificates.
package struct ConnectionKey: Hashable {
    private let texts: [String?]
    /// The digest of the passphrase, of the proxy's password, and of a proxy's URL that may contain a password.
    private let secrets: [UInt8]
    private let pinnedPublicKeys: [String]
    private let proxy: Proxy.Choice
    private let proxyExceptions: [String]?
    private let addressFamily: ConnectionOptions.AddressFamily
    private let httpVersion: ConnectionOptions.HTTPVersion
    private let isVerified: Bool

    package init(_ options: ConnectionOptions) {
        let certificate = options.clientCertificate
        texts = [
            options.certificateAuthorityFile, certificate?.certificateFile, certificate?.keyFile, options.proxy.userName,
            options.localInterface,
        ]
        var proxy = options.proxy.choice
        var proxyURL: String?
        if case .variableValue(let value) = proxy {
            proxy = .variableValue("")
            proxyURL = value
        }
        self.proxy = proxy
        secrets = Self.digest([certificate?.passphrase?.reveal(), options.proxy.password?.reveal(), proxyURL])
        pinnedPublicKeys = options.pinnedPublicKeys
        proxyExceptions = options.proxy.exceptions
        addressFamily = options.addressFamily
        httpVersion = options.httpVersion
        isVerified = options.verification.isRequired
    }

    /// Random bytes that are hashed before the secrets. They differ in each process, so a leaked digest without these bytes reveals nothing
    /// about a short secret.
    private static let randomPrefix = (0..<32).map { _ in UInt8.random(in: 0...UInt8.max) }

    private static func digest(_ secrets: [String?]) -> [UInt8] {
        var hash = RunningChecksum(.sha256)
        hash.update(randomPrefix)
        for secret in secrets {
            let bytes = secret.map { Array($0.utf8) }
            // The length separates the secrets, and distinguishes a missing secret from an empty one.
            hash.update(Array("\(bytes?.count ?? -1):".utf8))
            hash.update(bytes ?? [])
        }
        return hash.digest
    }
}

/// Connections and TLS sessions that requests with the same options share. Used only on the thread of ``CurlLoop``.
@safe final class ConnectionPool {
    /// libcurl's share object, which owns the connections. Freeing it closes them.
    let share: UnsafeMutableRawPointer
    /// The value of the use counter when a transfer last took the pool. The pool with the lowest value is the least recently used.
    fileprivate var lastUse: UInt64 = 0
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

struct ConnectionPools {
    /// The maximum number of idle pools. Beyond this number, the least recently used idle pool is dropped with its connections.
    static let maximumIdle = 8

    private var pools: [ConnectionKey: ConnectionPool] = [:]
    private var useCount: UInt64 = 0

    /// Returns the pool for a key. After use, give the pool back with ``giveBack(_:)``.
    mutating func take(_ key: ConnectionKey) throws(CurlEngineError) -> ConnectionPool {
        let pool: ConnectionPool
        if let existing = pools[key] { pool = existing } else { pool = try ConnectionPool() }
        pools[key] = pool
        useCount += 1
        pool.lastUse = useCount
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
