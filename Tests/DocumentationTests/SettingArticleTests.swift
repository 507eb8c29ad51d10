import Foundation
import Testing
import TransportHTTP
import TransportSFTP
import TransportSupport
import TransportTUS

/// The tables of settings in the articles match the descriptions in the transports.
@Suite struct SettingArticleTests {
    private func rows(_ settings: [SettingDescription]) -> [String] {
        settings.map { "| `\($0.name)` | \($0.values) | \($0.standard) |" }
    }

    @Test func articleListsTUSSettings() throws {
        let article = try Catalog.file(of: "TUSAccounts")
        #expect(try Catalog.table(below: "Settings of accounts", in: article) == rows(TUSTransport.settings))
    }

    @Test func articleListsPlainHTTPSettings() throws {
        let article = Catalog.package.appending(path: "Plugins/HTTP/TransportHTTP/TransportHTTP.docc/PlainHTTP.md")
        #expect(try Catalog.table(below: "Settings of accounts", in: article) == rows(HTTPTransport.settings.filter(\.isForEndpoints)))
        let sessionSettings = HTTPTransport.settings.filter(\.isForSessions)
        let shared = sessionSettings.filter(\.isForEndpoints).map { "`\($0.name)`" }.joined(separator: ", ")
        let sessionOnly = sessionSettings.filter { !$0.isForEndpoints }.map { "| `\($0.name)` | \($0.values) |" }
        #expect(try Catalog.table(below: "Settings of sessions", in: article) == ["| \(shared) | as for accounts |"] + sessionOnly)
    }

    @Test func articleListsSFTPSettings() throws {
        let article = try Catalog.file(of: "SFTPAccounts")
        #expect(try Catalog.table(below: "Settings of accounts", in: article) == rows(SFTPTransport.settings))
    }
}
