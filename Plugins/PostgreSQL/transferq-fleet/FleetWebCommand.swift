import ArgumentParser
import Foundation
import SystemPackage
import TransferCommands
import TransferFleet
import TransferKit
import TransferWeb

/// Serves the page of a fleet.
struct FleetWebCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "web", abstract: "Serves a page and an HTTP interface for the fleet.",
        discussion: """
            Prints the URL of the page, with a token. The storage folder contains the tokens. See transferq web --help.

            Example: transferq --fleet postgresql://db.example.com/transferq web
            """)

    @Option(help: ArgumentHelp("The storage folder of the tokens.", valueName: "dir")) var store: String?
    @OptionGroup var web: WebOptions

    /// Returns after SIGTERM, SIGINT or SIGHUP.
    ///
    /// - Returns: The exit status.
    func run(at url: String, place: FleetPlace) async throws -> Int32 {
        guard var options = WebServerOptions(listeningOn: web.listen ?? "127.0.0.1:8420") else {
            throw QueueError(.invalidRequest, "--listen must be an address and a port, such as 127.0.0.1:8420 or [::1]:0.")
        }
        (options.hostNames, options.isReadOnly) = (web.name, web.readOnly)
        options.certificate = web.certificateAndKey.map { .init(chain: $0.certificate, key: $0.key) }
        let folder = store.map { FilePath($0) } ?? Storage.variable("TRANSFERQ_STORE") ?? Storage.xdgStateFolder(of: "transferq-fleet")
        let fleet = try Fleet(url, place: place)
        // A wrong URL ends the command. Later, the page reports that the database is away.
        _ = try await fleet.status()
        let server = WebServer(fleet, tokensIn: folder, options: options)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let signals = TerminationSignals {}
        defer { signals.cancel() }
        do {
            _ = FleetProgramCommand.show(try await server.start())
        } catch {
            throw QueueError(.storageUnavailable, "\(error)")
        }
        signals.whenReceived { end.yield() }
        for await _ in ends { break }
        await server.stop()
        await fleet.close()
        return 0
    }
}
