import Foundation
import Testing
import TransportHTTP
import TransportSFTP
import TransportSupport
import TransportTUS

/// The tables of settings in the articles match the descriptions in the transports.
@Suite struct SettingArticleTests {
    /// The lines of the table below a heading, without the two lines of its header.
    private func table(below heading: String, in article: String) throws -> [String] {
        let repository = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "../..")
        let text = try String(contentsOf: repository.appending(path: article), encoding: .utf8)
        let section = try #require(text.components(separatedBy: "## \(heading)\n").dropFirst().first)
        let lines = section.split(separator: "\n", omittingEmptySubsequences: false).drop { !$0.hasPrefix("|") }
        return lines.prefix { $0.hasPrefix("|") }.dropFirst(2).map(String.init)
    }

    private func rows(_ settings: [SettingDescription]) -> [String] {
        settings.map { "| `\($0.name)` | \($0.values) | \($0.standard) |" }
    }

    @Test func articleListsTUSSettings() throws {
        let article = "Plugins/TUS/TransportTUS/TransportTUS.docc/TUSAccounts.md"
        #expect(try table(below: "Settings of accounts", in: article) == rows(TUSTransport.settings))
    }

    @Test func articleListsPlainHTTPSettings() throws {
        let article = "Plugins/HTTP/TransportHTTP/TransportHTTP.docc/PlainHTTP.md"
        #expect(try table(below: "Settings of accounts", in: article) == rows(HTTPTransport.settings.filter(\.isForEndpoints)))
        let ofSessions = HTTPTransport.settings.filter(\.isForSessions)
        let shared = ofSessions.filter(\.isForEndpoints).map { "`\($0.name)`" }.joined(separator: ", ")
        let own = ofSessions.filter { !$0.isForEndpoints }.map { "| `\($0.name)` | \($0.values) |" }
        #expect(try table(below: "Settings of sessions", in: article) == ["| \(shared) | as for accounts |"] + own)
    }

    @Test func articleListsSFTPSettings() throws {
        let article = "Sources/TransferKit/TransferKit.docc/OperatingTransferq.md"
        #expect(try table(below: "Accounts for SFTP", in: article) == rows(SFTPTransport.settings))
    }
}
