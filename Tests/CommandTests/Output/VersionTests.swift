import Foundation
import SystemPackage
import Testing

@Suite struct VersionTests {
    @Test func printsVersionsOfProgramAndLibraries() async throws {
        let program = try TransferQ()
        let lines = try await program.succeed("--version").lines
        let first = try #require(lines.first)
        #expect(first.wholeMatch(of: /transferq [0-9]+\.[0-9]+\.[0-9]+/) != nil, "\(first)")
        // One line for tus and plain HTTP, one for SFTP, and one for SQLite.
        #expect(lines.count == 4 && Set(lines).count == 4, "\(lines)")

        let findings = try await program.succeed("doctor", "--json").objects()
        let versions = findings.compactMap { $0["version"] as? String }.map { "transferq \($0)" }
        let libraries = findings.compactMap { ($0["libraries"] as? [String])?.joined(separator: " ") }
        let databases = findings.compactMap { $0["sqlite"] as? String }.map { "SQLite/\($0)" }
        #expect(libraries.contains { $0.hasPrefix("libcurl/") } && libraries.contains { $0.hasPrefix("libssh2/") })
        // Each element names a library, followed, in parentheses, by the libraries that this library uses.
        let names = findings.compactMap { $0["libraries"] as? [String] }.joined()
        #expect(names.allSatisfy { $0.wholeMatch(of: /[^ ();]+\/[^ ();]+( \(.*\))?/) != nil }, "\(Array(names))")
        #expect(versions.count == 1 && databases.count == 1)
        #expect(Set(lines) == Set(versions + libraries + databases))
    }

    /// `--version` needs no queue, and prints the same text after a command.
    @Test func needsNoQueue() async throws {
        let program = try TransferQ()
        let versions = try await program.succeed("--version").output
        #expect(try await program.succeed("list", "--version").output == versions)
        #expect(!FileManager.default.fileExists(atPath: program.store.string))
    }

    /// The newest version in the changelog is the program's version. The heading of this version contains the release date, or `unreleased`.
    @Test func changelogDescribesThisVersion() async throws {
        // This file is in Tests/CommandTests/Output, four levels below the package folder.
        let package = (0..<4).reduce(URL(fileURLWithPath: #filePath)) { url, _ in url.deletingLastPathComponent() }
        let changelog = try String(contentsOf: package.appending(path: ".github/CHANGELOG.md"), encoding: .utf8)
        let headings = changelog.split(separator: "\n").filter { $0.hasPrefix("## ") && $0 != "## Unreleased" }
        let version = try #require(try await TransferQ().succeed("--version").lines.first)
        let heading = try #require(headings.first?.wholeMatch(of: #/## (\S+) \((?:unreleased|\d{4}-\d\d-\d\d)\)/#), "\(headings)")
        #expect(heading.1 == version.dropFirst("transferq ".count))
    }
}
