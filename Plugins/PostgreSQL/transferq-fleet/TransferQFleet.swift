import ArgumentParser
import Foundation
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
        let words = try FleetArguments(arguments)
        guard let url = words.url else {
            if let help = FleetProgramCommand.help(words.rest) { return FleetProgramCommand.show(help) }
            throw QueueError(.invalidRequest, "The fleet is missing. Use --fleet URL, or set TRANSFERQ_FLEET.")
        }
        let command = CommandLineProgram.beginningWithCommand(words.rest)
        if ["fleet", "web"].contains(command.first) || command.starts(with: ["agent", "run"]) {
            return try await FleetProgramCommand.run(command, at: url, place: words.place)
        }
        let fleet = try Fleet(url, place: words.place)
        let status = await program.run(words.rest, on: fleet)
        await fleet.close()
        return status
    }
}

/// The options of all commands on a fleet, taken out of a command's arguments.
struct FleetArguments {
    private(set) var url: String?
    private(set) var place = FleetPlace.member(ProcessInfo.processInfo.hostName)
    /// The other arguments.
    private(set) var rest: [String] = []

    /// - Throws: `QueueError` with the code `invalidRequest` if an option has no value, or a wrong one.
    init(_ arguments: [String]) throws(QueueError) {
        url = ProcessInfo.processInfo.environment["TRANSFERQ_FLEET"].flatMap { $0.isEmpty ? nil : $0 }
        var words = arguments[...]
        while let word = words.popFirst() {
            if word == "--" {
                rest += [word] + words
                break
            }
            if let value = try Self.value(of: "--fleet", word, &words) {
                url = value
            } else if let value = try Self.value(of: "--place", word, &words) {
                place = try Self.place(value)
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
        default: throw QueueError(.invalidRequest, "--place must be anywhere, member:NAME or label:NAME, not \(text).")
        }
    }
}
