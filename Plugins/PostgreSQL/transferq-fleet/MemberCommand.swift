import ArgumentParser
import Foundation
import Logging
import SystemPackage
import TransferCommands
import TransferFleet
import TransferKit

/// Makes this host a member of a fleet.
struct MemberCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Transfers the fleet's sessions until SIGTERM or SIGINT.",
        discussion: """
            Example: transferq --fleet postgresql://db.example.com/transferq agent run --slots 2 --label media
            """)

    @Option(help: ArgumentHelp("The storage folder of the member.", valueName: "dir")) var store: String?
    @Option(help: "Concurrent sessions.") var slots = 1
    @Option(help: "The member's name (default: this host's name).") var name: String?
    @Option(parsing: .singleValue, help: "A label that --place can name; repeatable.") var label: [String] = []
    @Flag(name: .shortAndLong, help: "Log more.") var verbose = false

    func validate() throws {
        if slots < 1 { throw ValidationError("--slots must be at least 1.") }
        if name == "" { throw ValidationError("--name must not be empty.") }
    }

    /// Returns after SIGTERM or SIGINT.
    ///
    /// - Returns: The exit status.
    func run(at url: String) async throws -> Int32 {
        // The environment can contain credentials and the password of the database.
        CommandLineProgram.protectMemory()
        var logger = Logger(label: "transferq")
        logger.logLevel = verbose ? .debug : .notice
        var configuration = FleetMemberConfiguration(slots: slots, labels: label, logger: logger)
        if let name { configuration.name = name }
        let folder =
            store.map { FilePath($0) } ?? Storage.variable("TRANSFERQ_STORE") ?? Storage.xdgStateFolder(of: "transferq-member")
        let member = try await FleetMember(
            of: url, folder: folder, transports: RegisteredTransports.builtIn.all.map(\.transport), configuration: configuration)
        let signals = TerminationSignals {}
        signals.whenReceived { Task { await member.stop() } }
        defer { signals.cancel() }
        try await member.run()
        return 0
    }
}
