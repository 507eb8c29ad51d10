import Foundation
import SystemPackage
import Testing
import TransferCommands
import TransferCore
import TransferKit
import TransportHTTP
import TransportSFTP
import TransportSupport
import TransportTUS

@Suite(.serialized) struct HelpTests {
    static let commands = [
        "upload", "download", "add", "enqueue", "stream", "run", "list", "show", "why", "watch", "web", "now", "next", "move", "pause",
        "resume", "hold", "release", "yield", "cancel", "retry", "remove", "set", "doctor", "account add", "account list", "account show",
        "account edit", "account check", "account unblock", "account retry", "account remove", "queue status", "queue set", "queue start",
        "queue stop", "queue drain", "agent start", "agent stop", "agent status", "agent unit", "agent run", "quarantine list",
        "quarantine retry", "quarantine drop",
    ]

    /// Checks that ``commands`` contains all commands that the argument parser knows.
    @Test func listsAllCommands() async throws {
        struct Tree: Decodable {
            struct Command: Decodable {
                let commandName: String
                let subcommands: [Command]?

                func leaves(below words: [String] = []) -> [String] {
                    guard let subcommands else { return [(words + [commandName]).joined(separator: " ")] }
                    return subcommands.flatMap { $0.leaves(below: words + [commandName]) }
                }
            }

            let command: Command
        }
        let dump = try await TransferQ().run("--experimental-dump-help")
        let tree = try JSONDecoder().decode(Tree.self, from: Data(dump.output.utf8))
        let found = tree.command.subcommands?.flatMap { $0.leaves() }.filter { $0 != "help" }
        #expect(found?.sorted() == Self.commands.sorted())
    }

    @Test(arguments: commands + ["account", "agent", "queue", ""])
    func showsExample(command: String) async throws {
        let program = try TransferQ()
        let help = try await program.run(command.split(separator: " ").map(String.init) + ["--help"])
        #expect(help.status == 0 && help.diagnostics == "")
        // Joins wrapped lines.
        let text = help.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(text.contains("Example: transferq \(command)") || text.contains("| transferq \(command)"))
    }

    /// At 80 columns, the description of each command, argument and option fits on one line, except lists of values.
    @Test(arguments: commands + ["", "account", "agent", "queue", "quarantine"])
    func hasOneLineForEachOption(command: String) async throws {
        var program = try TransferQ()
        program.environment["COLUMNS"] = "80"
        let help = try await program.run(command.split(separator: " ").map(String.init) + ["--help"])
        let lines = help.output.split(separator: "\n", omittingEmptySubsequences: false)
        let indent = String(repeating: " ", count: 26)
        for (before, line) in zip(lines, lines.dropFirst()) where line.hasPrefix(indent) {
            // If an option's name is too long for the first column, the name is on a separate line before the description.
            #expect(before.hasPrefix("  ") && !before.hasPrefix(indent) && before.count < 60, "\(before)\n\(line)")
            #expect(before.count <= 26 || before.dropFirst(25).first != " ", "\(before)\n\(line)")
        }
    }

    /// The sections that errors refer to exist. The doc comments of these errors, and of no other errors, link to *Troubleshooting*.
    @Test func namesSectionsOfTroubleshooting() throws {
        let article = try String(contentsOfFile: "Sources/transferq/transferq.docc/Troubleshooting.md", encoding: .utf8)
        let headings = article.split(separator: "\n").filter { $0.hasPrefix("## ") }.map { String($0.dropFirst(3)) }
        let sections = Set(Troubleshooting.transferSections.values).union(Troubleshooting.queueSections.values)
        #expect(sections.isSubset(of: headings), "\(sections.subtracting(headings))")
        let transferCodes = try Self.linkedCodes(in: ["TransferCore/Errors/TransferError"])
        #expect(transferCodes == Troubleshooting.transferSections.keys.map(\.rawValue).sorted())
        let queueCodes = try Self.linkedCodes(in: ["TransferKit/Model/QueueError", "TransferControl/QueueError+Control"])
        #expect(queueCodes == Troubleshooting.queueSections.keys.map(\.rawValue).sorted())
    }

    /// Returns the sorted names of the error codes whose doc comments link to *Troubleshooting*.
    private static func linkedCodes(in files: [String]) throws -> [String] {
        let lines = try files.flatMap { try String(contentsOfFile: "Sources/\($0).swift", encoding: .utf8).split(separator: "\n") }
        return lines.indices.compactMap { index -> String? in
            guard let code = lines[index].firstMatch(of: /static let (\w+) =/) else { return nil }
            let comment = lines[..<index].reversed().prefix { $0.contains("///") }
            return comment.contains { $0.contains("<doc:/transferq/Troubleshooting>") } ? String(code.1) : nil
        }.sorted()
    }

    @Test(
        arguments: [
            (.connectionRefused, "`Cannot reach`"), (.notThisProtocol, "`does not accept PUT at this file's URL`"),
            (.credentialsRejected, "`does not accept the credentials`"),
            (.credentialsRejected, "`requires credentials, but the account has none`"),
            (.credentialsUnavailable, "`The environment variable`"), (.credentialsRejected, "`No credentials for`"),
            (.serverNotTrusted, "`is not known. It presents the`"), (.tooLarge, "`does not accept a file of this size`"),
            (.noSuchRemoteFile, "`has no file`"),
        ] as [(TransferError.Code, String)])
    func explainsErrorInItsSection(code: TransferError.Code, message: String) throws {
        let article = try String(contentsOfFile: "Sources/transferq/transferq.docc/Troubleshooting.md", encoding: .utf8)
        let heading = try #require(Troubleshooting.transferSections[code])
        let section = try #require(article.components(separatedBy: "\n## ").first { $0.hasPrefix("\(heading)\n") })
        #expect(section.contains(message))
    }

    @Test func findsInstalledTroubleshooting() async throws {
        let folder = try TemporaryFolder()
        let program = folder.path.appending("bin/transferq")
        let path = "Sources/transferq/transferq.docc/Troubleshooting.md"
        #expect(
            Troubleshooting.articleLocation(for: program) == "\(path) in the repository" && FileManager.default.fileExists(atPath: path))
        let help = try await TransferQ().run("--help").output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(help.contains("solutions: \(path) in the repository"))
        let installed = folder.path.appending("share/doc/transferq")
        try FileManager.default.createDirectory(atPath: installed.string, withIntermediateDirectories: true)
        let article = try folder.file("share/doc/transferq/Troubleshooting.md", size: 1)
        #expect(Troubleshooting.articleLocation(for: program) == article.string)
    }

    @Test func helpAndArticleListSameExitStatuses() async throws {
        let help = try await TransferQ().run("--help").output
        let listed = help.split(separator: "\n").compactMap { $0.wholeMatch(of: #/ {2}(\d+) +\S.*/#).flatMap { Int($0.1) } }
        let article = try String(contentsOfFile: "Sources/transferq/transferq.docc/OperatingTransferq.md", encoding: .utf8)
        let rows = article.split(separator: "\n").compactMap { $0.wholeMatch(of: /\| (\d+) \| .*/).flatMap { Int($0.1) } }
        #expect(listed == [0, 1, 2, 3, 4, 130] && rows == listed)
    }

    /// The help of `--setting` lists the settings of each transport, except those with a separate option.
    @Test func listsSettings() async throws {
        func list(_ transport: String, _ settings: [SettingDescription], without own: Set<String>) -> String {
            "Settings of \(transport): \(settings.map(\.name).filter { !own.contains($0) }.joined(separator: ", "))."
        }
        let own: Set = ["caFile", "clientCertificate", "clientKey", "hostKey", "identity", "knownHosts", "header.NAME"]
        let endpoints = [
            list("tus", TUSTransport.settings, without: own), list("sftp", SFTPTransport.settings, without: own),
            list("http", HTTPTransport.settings.filter(\.isForEndpoints), without: own),
        ]
        let sessions = [list("http", HTTPTransport.settings.filter(\.isForSessions), without: [])]
        let program = try TransferQ()
        for (command, lists) in [(["account", "add"], endpoints), (["account", "edit"], endpoints), (["upload"], sessions)] {
            let help = try await program.run(command + ["--help"]).output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            for list in lists { #expect(help.contains(list), "\(command) \(help)") }
        }
    }
}
