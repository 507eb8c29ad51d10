import ArgumentParser
import Foundation
import TransferCommands
import TransferFleet

/// The commands of `transferq-fleet` that manage a fleet. The program runs all other commands like `transferq`.
struct FleetProgramCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "transferq-fleet", abstract: "Runs the commands of transferq on a queue of several hosts.",
        discussion: """
            The queue is in a PostgreSQL database. "transferq" starts this program if --fleet URL or $TRANSFERQ_FLEET names a fleet. The \
            commands below manage the fleet. Most other commands of transferq also work; see transferq --help.

            --place PLACE sets where new sessions may run: anywhere, member:NAME or label:LABEL. By default, sessions whose files are all below \
            the folders in $TRANSFERQ_SHARED (separated by colons) may run anywhere, and others on the member with this host's name.

            Example: transferq --fleet postgresql://owner@db.example.com/transferq fleet init
            Example: transferq --fleet postgresql://db.example.com/transferq agent start --slots 2
            Example: transferq --fleet postgresql://db.example.com/transferq --place anywhere upload studio reel.mov
            """, subcommands: [FleetCommand.self, AgentCommand.self, FleetWebCommand.self])

    struct AgentCommand: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "agent", abstract: "Makes this host a member of the fleet.",
            subcommands: [MemberStartCommand.self, MemberCommand.self])
    }

    /// The help that the arguments request; nil if they request no help.
    static func help(_ arguments: [String]) -> String? {
        do {
            _ = try parse(command: arguments)
            return nil
        } catch {
            return exitCode(for: error) == .success ? fullMessage(for: error) : nil
        }
    }

    /// Runs a command that manages a fleet.
    ///
    /// - Parameter arguments: The command with its arguments, without `--fleet` and `--place`.
    /// - Returns: The exit status.
    static func run(
        _ arguments: [String], at url: String, _ options: FleetArguments, _ program: CommandLineProgram
    ) async throws -> Int32 {
        let command: any ParsableCommand
        do {
            command = try parse(command: arguments)
        } catch {
            let text = fullMessage(for: error)
            if exitCode(for: error) == .success { return show(text) }
            FileHandle.standardError.write(Data("\(text)\n".utf8))
            return 2
        }
        if let command = command as? MemberCommand { return try await command.run(at: url) }
        if let command = command as? MemberStartCommand { return try await command.run(fleetOption: options.option, program) }
        if let command = command as? FleetWebCommand { return try await command.run(at: url, options) }
        return try await (command as? FleetCommand)?.run(at: url) ?? 2
    }

    /// Prints a text to standard output.
    ///
    /// - Returns: The exit status for success.
    static func show(_ text: String) -> Int32 {
        FileHandle.standardOutput.write(Data((text.isEmpty ? "" : text + "\n").utf8))
        return 0
    }

    /// Parses a command that ``run(_:at:_:_:)`` can run.
    ///
    /// - Throws: The parser's error, which can be a request for help.
    private static func parse(command arguments: [String]) throws -> any ParsableCommand {
        var command = try parseAsRoot(arguments)
        // Any other command is a group of commands. Its `run()` throws a request for help.
        if !(command is FleetCommand || command is MemberCommand || command is MemberStartCommand || command is FleetWebCommand) {
            try command.run()
        }
        return command
    }
}
