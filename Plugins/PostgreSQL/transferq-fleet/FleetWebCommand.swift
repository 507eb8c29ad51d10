import ArgumentParser
import Foundation
import SystemPackage
import TransferCommands
import TransferFleet
import TransferKit
import TransferWeb

struct FleetWebCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "web", abstract: "Serves a page and an HTTP interface for the fleet.",
        discussion: """
            Prints the URL of the page, with a token. Sessions that the page adds may run at --place, by default on the member with this \
            host's name. For access from other machines, a TLS certificate is required.

            Example: transferq --fleet postgresql://db.example.com/transferq web
            """)

    @Option(help: ArgumentHelp("The folder of the tokens (default: one for each fleet).", valueName: "dir")) var store: String?
    @OptionGroup var web: WebOptions

    /// Runs the web server until SIGTERM, SIGINT or SIGHUP.
    ///
    /// - Returns: The exit status.
    func run(at url: String, _ fleetOptions: FleetArguments) async throws -> Int32 {
        guard var options = WebServerOptions(listeningOn: web.listen ?? "127.0.0.1:8420") else {
            throw QueueError(.invalidRequest, "--listen must be an address and a port, such as 127.0.0.1:8420 or [::1]:0.")
        }
        (options.hostNames, options.isReadOnly) = (web.name, web.readOnly)
        options.certificate = web.certificateAndKey.map { .init(chain: $0.certificate, key: $0.key) }
        // The environment can contain the password of the database.
        CommandLineProgram.protectMemory()
        let fleet = try Fleet(
            url, place: fleetOptions.place, sharedFolders: fleetOptions.sharedFolders,
            transports: RegisteredTransports.builtIn.all.map(\.transport))
        // Fail early if the URL is wrong. After the start, the web page would only show that the database is unreachable.
        let identity = try await fleet.identity()
        // The tokens for one fleet must not give access to another fleet.
        let folder = store.map { FilePath($0) } ?? Storage.xdgStateFolder(of: "transferq-fleet").appending(identity)
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
        return 0
    }
}
