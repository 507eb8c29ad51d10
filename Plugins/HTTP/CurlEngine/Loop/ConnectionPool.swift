import CCurl
import TransferCore

/// What connections must have in common to stand in for one another: all options, secrets included.
///
/// libcurl compares most of them itself, but not all: in 7.88 a request without an interface takes a connection that is bound to one, one for
/// HTTP/2 takes one of HTTP/1.1, and the key of a client certificate is not looked at.
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

/// Connections, and TLS sessions to resume, that may stand in for one another. Confined to the loop's thread.
@safe final class ConnectionPool {
    /// libcurl's share object; its connections close with it.
    let share: UnsafeMutableRawPointer
    /// When it was last taken, in a count of such events.
    fileprivate var lastUse: UInt64 = 0
    /// How many transfers hold it.
    fileprivate var users = 0

    init() throws(CurlEngineError) {
        guard let share = unsafe curl_share_init() else {
            throw CurlEngineError(.outOfResources, "This machine is out of memory.")
        }
        unsafe self.share = unsafe share
        // One thread alone uses them, so no lock functions are needed (CURLSHOPT_LOCKFUNC(3)).
        unsafe ccurl_share_setopt_data(share, CURL_LOCK_DATA_CONNECT)
        unsafe ccurl_share_setopt_data(share, CURL_LOCK_DATA_SSL_SESSION)
    }

    deinit {
        unsafe curl_share_cleanup(share)
    }
}

/// The pools of one engine.
struct ConnectionPools {
    /// How many pools are kept that no transfer uses; the one that was used least recently goes first, and its connections with it.
    static let maximumIdle = 8

    private var pools: [ConnectionKey: ConnectionPool] = [:]
    private var uses: UInt64 = 0

    /// The pool for some options. To be given back by ``giveBack(_:)``.
    mutating func take(_ key: ConnectionKey) throws(CurlEngineError) -> ConnectionPool {
        let pool: ConnectionPool
        if let existing = pools[key] { pool = existing } else { pool = try ConnectionPool() }
        pools[key] = pool
        uses += 1
        pool.lastUse = uses
        pool.users += 1
        return pool
    }

    /// Called when no handle of a transfer refers to the pool any more.
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
