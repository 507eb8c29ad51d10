import Foundation
import TransferKit
import TransportHTTP
import TransportSFTP
import TransportTUS

/// Sends files over three transports. Each session uses the endpoints of its account.
///
///     AccountRouter TUS_URL SFTP_URL PUT_URL SSH_KEY KNOWN_HOSTS FOLDER
@main
struct AccountRouter {
    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count == 6 else { return print("Usage: AccountRouter TUS_URL SFTP_URL PUT_URL SSH_KEY KNOWN_HOSTS FOLDER") }
        let folder = URL(filePath: arguments[5])

        // The queue does not retain its delegate.
        let chooser = NightlyChooser()
        let queue = try await TransferQueue(
            storage: .inMemory, transports: [TUSTransport(), SFTPTransport(), HTTPTransport()], delegate: chooser)
        try await saveAccounts(arguments, in: queue)

        func upload(_ name: String, to account: String, tags: [String] = []) throws -> SessionRequest {
            try .upload([folder.appending(path: name)], to: account, tags: tags)
        }
        try await queue.enqueue([
            upload("notes.txt", to: "studio"),  // SFTP, because of the rule for small files
            upload("stills.zip", to: "studio", tags: ["nightly"]),  // SFTP, because the delegate chooses it
            upload("reel.mov", to: "studio"),  // tus, the first endpoint; SFTP if the tus server is unreachable
            upload("dailies.mov", to: "archive"),  // SFTP
            upload("poster.jpg", to: "website"),  // PUT
        ])

        let names = Dictionary(uniqueKeysWithValues: try await queue.sessions().map { ($0.id, $0.name) })
        let events = queue.events
        try await queue.start()
        loop: for await event in events {
            let name = event.session.flatMap { names[$0] } ?? ""
            switch event.kind {
            case .progress(_, let figures): print("\(name): \(figures.bytesSent) of \(figures.bytesKnown) bytes sent")
            case .endpointChanged(_, _, let address): print("\(name) continues at \(address)")
            case .itemCompleted(let id, _, _): print("\(name) arrived over \(try await queue.status(of: id).transport?.rawValue ?? "")")
            case .failed(_, let error): print("\(name) failed: \(error.message)")
            case .queueBecameIdle: break loop
            default: break
            }
        }
        await queue.shutdown()
    }

    static func saveAccounts(_ arguments: [String], in queue: TransferQueue) async throws {
        let (tus, sftp, put) = (arguments[0], arguments[1], arguments[2])
        // By default, the transport trusts only servers in the user's and the system's known hosts files, and tries the keys of the SSH agent.
        // This sample uses only the given files.
        let ssh = SFTPOptions(identities: [arguments[3]], agent: .none, knownHosts: arguments[4])

        // tus with SFTP as the fallback. A partly sent file waits at least 2 s for the tus server, and then restarts at the SFTP server.
        // Without a rule, the endpoints are tried in this order.
        try await queue.save(
            Account(
                "studio", endpoints: [.tus(tus), .sftp(sftp, options: ssh)], fallbackAfter: .seconds(2),
                rules: [EndpointRule(direction: .upload, maximumSize: 100_000, prefer: [sftp])]))
        // Only SFTP, and at most two concurrent sessions.
        try await queue.save(Account("archive", endpoints: [.sftp(sftp, options: ssh)], maxConcurrentSessions: 2))
        // A `PUT` for each file.
        try await queue.save(Account("website", endpoints: [.http(put)]))
    }
}

/// Prefers SFTP for sessions with the tag `nightly`.
actor NightlyChooser: TransferQueueDelegate {
    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) {}

    // Called if a session has several available endpoints. Returning nil leaves the choice to the account's order and rules.
    func queue(_ queue: TransferQueue, endpointFor session: SessionID, among endpoints: [Endpoint]) async -> Endpoint? {
        guard let status = try? await queue.status(of: session), status.tags.contains("nightly") else { return nil }
        return endpoints.first { $0.transport == .sftp }
    }
}
