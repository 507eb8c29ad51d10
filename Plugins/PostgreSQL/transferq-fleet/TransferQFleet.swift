import ArgumentParser
import Foundation
import SystemPackage
import TransferCommands
import TransferFleet
import TransferKit

/// The program `transferq-fleet`. It runs the commands of `transferq` on a fleet, and has commands for the fleet itself.
@main
enum TransferQFleet {
    static func main() async {
        await CommandLineProgram.main(arguments: ProcessArguments.current) { program, arguments in
            do {
                return try await run(arguments, program)
            } catch {
                return await program.failure(error)
            }
        }
    }

    private static func run(_ arguments: [String], _ program: CommandLineProgram) async throws -> Int32 {
        let options = try FleetArguments(arguments)
        guard let url = options.url else {
            if let help = FleetProgramCommand.help(options.rest) { return FleetProgramCommand.show(help) }
            throw QueueError(.invalidRequest, "The fleet is missing. Use --fleet URL, or set TRANSFERQ_FLEET.")
        }
        let command = CommandLineProgram.beginningWithCommand(options.rest)
        switch (command.first, command.dropFirst().first) {
        case ("fleet", _), ("web", _), ("agent", "run"), ("agent", "start"):
            return try await FleetProgramCommand.run(command, at: url, options, program)
        case ("agent", "stop"), ("agent", "status"):
            // The member responds on the socket in its storage folder.
            let hasFolder = command.contains { $0 == "--store" || $0.hasPrefix("--store=") }
            return await program.run(command + (hasFolder ? [] : ["--store", MemberOptions.defaultFolder.string]), on: nil)
        case ("agent", "unit"):
            throw QueueError.noUnitForMember
        default: break
        }
        let fleet = try Fleet(
            url, place: options.place, sharedFolders: options.sharedFolders, transports: RegisteredTransports.builtIn.all.map(\.transport))
        let status = await program.run(options.rest, on: fleet)
        await fleet.close()
        return status
    }
}

extension QueueError {
    fileprivate static var noUnitForMember: QueueError {
        QueueError(
            .invalidRequest, "There is no unit for a member of a fleet. Write one with ExecStart=transferq --fleet URL agent run.")
    }
}

/// The options `--fleet` and `--place`, which all commands on a fleet accept, separated from the other arguments.
struct FleetArguments {
    /// The value of `--fleet`; nil without this option.
    private(set) var option: String?
    /// The value of `TRANSFERQ_FLEET`.
    private let variable: String?
    var url: String? { option ?? variable }
    /// The value of `--place`; nil without this option.
    private var chosenPlace: FleetPlace?
    var place: FleetPlace { chosenPlace ?? .member(ProcessInfo.processInfo.hostName) }
    /// The folders in `TRANSFERQ_SHARED`, separated by colons. Empty if `--place` is given, because the option takes precedence.
    var sharedFolders: [FilePath] {
        guard chosenPlace == nil else { return [] }
        let text = ProcessInfo.processInfo.environment["TRANSFERQ_SHARED"] ?? ""
        return text.split(separator: ":").map { FilePath(String($0)) }.filter(\.isAbsolute)
    }
    private(set) var rest: [String] = []

    /// Separates the options from the other arguments, up to the argument `--`.
    ///
    /// - Throws: `QueueError` with the code `invalidRequest` if an option has no value, or an invalid value.
    init(_ arguments: [String]) throws(QueueError) {
        variable = ProcessInfo.processInfo.environment["TRANSFERQ_FLEET"].flatMap { $0.isEmpty ? nil : $0 }
        var words = arguments[...]
        while let word = words.popFirst() {
            if word == "--" {
                rest += [word] + words
                break
            }
            if let value = try Self.value(of: "--fleet", word, &words) {
                option = value
            } else if let value = try Self.value(of: "--place", word, &words) {
                chosenPlace = try Self.place(value)
            } else {
                rest.append(word)
            }
        }
    }

    private static func value(of option: String, _ word: String, _ words: inout ArraySlice<String>) throws(QueueError) -> String? {
        if word.hasPrefix(option + "=") { return String(word.dropFirst(option.count + 1)) }
        guard word == option else { return nil }
        guard let value = words.popFirst() else { throw QueueError(.invalidRequest, "\(option) needs a value.") }
        return value
    }

    private static func place(_ text: String) throws(QueueError) -> FleetPlace {
        if text == "anywhere" { return .anywhere }
        let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
        switch (parts.first, parts.dropFirst().first) {
        case ("member", let name?): return .member(name)
        case ("label", let label?): return .label(label)
        default: throw QueueError(.invalidRequest, "--place must be anywhere, member:NAME or label:LABEL, not \(text).")
        }
    }
}
