import Locking
import Logging
import ScriptedHTTP
import TransferCore
import TransportHTTP

/// A listing of the folder `in/ä` on a scripted WebDAV server.
struct TestListing {
    static let path = "/dav/in/%C3%A4/"

    let transport = HTTPTransport()
    let server: ScriptedServer
    var endpoint: Endpoint
    var options = AttemptOptions()

    init(address: String = "/dav/", webDAV: Bool = true, _ script: @escaping ScriptedServer.Script) throws {
        server = try ScriptedServer(script)
        endpoint = .http("http+put://127.0.0.1:\(server.port)\(address)", options: HTTPOptions(webDAV: webDAV))
    }

    init(status: Int = 207, _ body: String) throws {
        try self.init { _, _ in [.answer(status, ["Content-Type": "application/xml"], body: body)] }
    }

    /// Lists the folder.
    ///
    /// - Parameter limit: The number of entries after which the receiver throws an error.
    func run(atMost limit: Int = .max) async -> (entries: [RemoteEntry], error: (any Error)?) {
        let listed = Locked<[RemoteEntry]>([])
        var failure: (any Error)?
        do {
            let attempt = ListingAttempt(
                endpoint: endpoint, remotePath: try RemotePath("in/ä"), options: options,
                origin: AttemptOrigin(session: "s-1", account: "nas"),
                credentials: FixedCredentials(), logger: Logger(label: "test"))
            try await transport.list(attempt) { entries in
                let count = listed.withLock { listed in
                    listed += entries
                    return listed.count
                }
                if count >= limit { throw LimitReached() }
            }
        } catch {
            failure = error
        }
        return (listed.withLock { $0 }, failure)
    }

    /// Lists the folder, and returns the names of its files and folders. Folders end with a slash.
    func names() async throws -> [String] {
        let (entries, error) = await run()
        if let error { throw error }
        return entries.map { String(decoding: $0.name, as: UTF8.self) + ($0.kind == .folder ? "/" : "") }
    }

    func failure() async -> TransferError? { await run().error as? TransferError }

    func end() async {
        await transport.shutdown()
        server.stop()
    }

    struct LimitReached: Error {}

    /// A response that lists the folder itself, and the given members.
    static func multistatus(_ members: String...) -> String { multistatus(members) }

    static func multistatus(_ members: [String]) -> String {
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\(member(path, isFolder: true))\(members.joined())</D:multistatus>\n"
    }

    static func member(_ href: String, isFolder: Bool = false, size: String? = "5") -> String {
        let length = isFolder ? "" : size.map { "<D:getcontentlength>\($0)</D:getcontentlength>" } ?? ""
        return """
            <D:response><D:href>\(href)</D:href><D:propstat><D:prop><D:resourcetype>\(isFolder ? "<D:collection/>" : "")</D:resourcetype>\
            \(length)</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
            """
    }
}
