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
        commandName: "agent run", abstract: "Makes this host a member of the fleet, until SIGTERM or SIGINT.")

    @Option(help: ArgumentHelp("The storage folder of the member.", valueName: "dir")) var store: String?
    @Option(help: "The maximum number of concurrent sessions.") var slots = 1
    @Option(help: "The member's name (default: this host's name).") var name: String?
    @Option(parsing: .singleValue, help: "A label for sessions with a matching place; repeatable.") var label: [String] = []
    @Flag(name: .shortAndLong, help: "Log more.") var verbose = false

    func validate() throws {
        if slots < 1 { throw ValidationError("--slots must be at least 1.") }
        if name == "" { throw ValidationError("--name must not be empty.") }
    }

    static func run(_ arguments: [String], at url: String) async throws -> Int32 {
        let command: MemberCommand
        do {
            command = try parse(arguments)
        } catch {
            if exitCode(for: error) == .success { return FleetCommand.show(fullMessage(for: error)) }
            FileHandle.standardError.write(Data("\(fullMessage(for: error))\n".utf8))
            return 2
        }
        var logger = Logger(label: "transferq")
        logger.logLevel = command.verbose ? .debug : .notice
        var configuration = FleetMemberConfiguration(slots: command.slots, labels: command.label, logger: logger)
        if let name = command.name { configuration.name = name }
        let folder =
            command.store.map { FilePath($0) } ?? Storage.variable("TRANSFERQ_STORE") ?? Storage.xdgStateFolder(of: "transferq-member")
        let member = try await FleetMember(
            of: url, folder: folder, transports: RegisteredTransports.builtIn.all.map(\.transport), configuration: configuration)
        let signals = TerminationSignals {}
        signals.whenReceived { Task { await member.stop() } }
        defer { signals.cancel() }
        try await member.run()
        return 0
    }
}
