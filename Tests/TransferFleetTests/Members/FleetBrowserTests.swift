import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferKit

/// Runs the browser tests of the web page against a fleet; see `BrowserTests` in TransferWebTests.
@Suite(.serialized, .enabled(if: ProcessInfo.processInfo.environment["TRANSFERKIT_BROWSER_TESTS"] != nil)) struct FleetBrowserTests {
    @Test(arguments: ["reorder", "stale", "reconnect", "forms", "keys"]) func `the page controls a fleet`(_ test: String) async throws {
        let fleet = try await FleetFixture()
        try await fleet.add((0..<6).map { FleetFixture.draft("session \($0)") }, held: true)
        let web = try await FleetWeb(of: fleet)
        defer { web.stop() }
        let folder = FilePath(FileManager.default.currentDirectoryPath)
        let (url, token) = (web.url, web.token)
        let run = try await BlockingIO.run {
            try StartedProgram.run(
                "sh",
                [
                    "-c", "exec env PYTHONDONTWRITEBYTECODE=1 \"$0\" \"$@\" 2>&1", folder.appending(".build/browser/bin/python").string,
                    folder.appending("Tests/TransferWebTests/Browser/page.py").string, test, url, token,
                    folder.appending(".build/screenshots").string,
                ])
        }
        #expect(run.status == 0, "\(test): \(String(decoding: run.output, as: UTF8.self).suffix(6_000))")
    }
}
