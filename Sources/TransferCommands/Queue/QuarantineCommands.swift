import ArgumentParser
import Foundation
import TransferControl
import TransferKit
import TransferOutput

struct QuarantineCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "quarantine", abstract: "Manages sessions that could not be read or stored.",
        discussion: """
            Sessions in quarantine never run, and other commands don't list them. Their data is kept unchanged.

            Example: transferq quarantine list
            """,
        subcommands: [QuarantineListCommand.self, QuarantineRetryCommand.self, QuarantineDropCommand.self])

    static func notice(_ count: Int) -> String? {
        guard count > 0 else { return nil }
        let subject = count == 1 ? "1 session is" : "\(count) sessions are"
        return "\(subject) in quarantine. To see why: transferq quarantine list"
    }
}

struct QuarantineListCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the sessions in quarantine and the reasons.",
        discussion: "Example: transferq quarantine list --json")

    @OptionGroup var common: CommonOptions

    func run() async throws {
        let rows = try await common.withQueue { try await $0.quarantined() }
        let (output, terminal) = (CommandContext.current.output, CommandContext.current.terminal)
        if common.json {
            for row in rows {
                await output.write([
                    "number": JSONValue(row.number), "id": JSONValue(row.session?.description), "name": JSONValue(row.name),
                    "foundAt": JSONValue(row.foundAt), "reason": .string(row.reason),
                ])
            }
        } else if rows.isEmpty {
            await terminal.write("No sessions are in quarantine.")
        } else {
            var table = Table([("NUMBER", .right), ("FOUND", .left), ("ID", .left), ("NAME", .left), ("REASON", .left)])
            for row in rows {
                table.append([
                    "\(row.number)", Figures.date(row.foundAt), row.session.map(SessionDescription.shortID) ?? "", row.name ?? "",
                    row.reason,
                ])
            }
            await output.write(table.text)
        }
    }
}

/// A command that restores or deletes sessions in quarantine, and prints their numbers.
protocol QuarantineChange: AsyncParsableCommand {
    var common: CommonOptions { get }
    var numbers: [Int64] { get }
    func change(_ number: Int64, in queue: any ControllableQueue) async throws
}

extension QuarantineChange {
    func run() async throws {
        var done: [Int64] = []
        let change = { (queue: any ControllableQueue) in
            // If the queue's owner exits before it responds, this closure is called again, and skips the sessions that it has already
            // changed.
            for number in numbers where !done.contains(number) {
                try await self.change(number, in: queue)
                done.append(number)
            }
        }
        do {
            try await common.withQueue(change)
        } catch {
            await report(done)
            throw error
        }
        await report(done)
    }

    private func report(_ numbers: [Int64]) async {
        let lines = numbers.map { common.json ? (["number": .integer($0)] as JSONValue).text : "\($0)" }
        await CommandContext.current.output.write(lines.map { $0 + "\n" }.joined())
    }
}

struct QuarantineRetryCommand: QuarantineChange {
    static let configuration = CommandConfiguration(
        commandName: "retry", abstract: "Returns sessions to the queue.",
        discussion: """
            If a running process owns the queue, the sessions return only when the queue is next opened after that process has exited. \
            Sessions that still can't be read return to quarantine.

            Example: transferq quarantine retry 1
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: "The session numbers that \"quarantine list\" shows.")
    var numbers: [Int64]

    func change(_ number: Int64, in queue: any ControllableQueue) async throws { try await queue.restoreQuarantined(number) }
}

struct QuarantineDropCommand: QuarantineChange {
    static let configuration = CommandConfiguration(
        commandName: "drop", abstract: "Permanently deletes sessions in quarantine.",
        discussion: """
            Unfinished uploads of these sessions stay on the servers. Tus servers remove them if uploads expire there. Remove part files from \
            SFTP servers yourself.

            Example: transferq quarantine drop 1
            """)

    @OptionGroup var common: CommonOptions

    @Argument(help: "The session numbers that \"quarantine list\" shows.")
    var numbers: [Int64]

    func change(_ number: Int64, in queue: any ControllableQueue) async throws { try await queue.dropQuarantined(number) }
}
