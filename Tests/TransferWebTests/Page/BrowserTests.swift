import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

/// Runs the tests of `Browser/page.py`, which control Chromium. The tests run one at a time, because each test starts a browser.
///
/// The tests need the packages of the group `browser` and an idle machine, so they run only if TRANSFERKIT_BROWSER_TESTS is set.
@Suite(.serialized, .enabled(if: ProcessInfo.processInfo.environment["TRANSFERKIT_BROWSER_TESTS"] != nil)) struct BrowserTests {
    @Test(arguments: ["reorder", "stale", "live", "reconnect", "forms", "keys", "more_keys"])
    func `a test of the page succeeds`(_ test: String) async throws {
        try await WebFixture.with { fixture in
            try await fixture.add(6) { "session \($0)" }
            try await Self.run(test, fixture)
        }
    }

    @Test func `the page of a large queue`() async throws {
        try await WebFixture.with { fixture in
            try await fixture.add(10_000) { "session \($0)" }
            try await Self.run("many", fixture)
        }
    }

    @Test func `the page of sessions with markup in their names`() async throws {
        try await WebFixture.with { fixture in
            try await fixture.add(2) { _ in "<script>window.attacked = 1</script><img src=/x onerror=\"window.attacked = 1\">" }
            let markup = "<img src=x onerror=\"window.attacked = 1\">"
            try await fixture.queue.save(Account("account \(markup)", endpoints: [fixture.memory.endpoint(host: "b")]))
            let source = try fixture.file("file \(markup)")
            let request = try SessionRequest.upload(items: [TransferItem(source, as: "remote")], to: "account \(markup)", name: "files")
            try await fixture.queue.add([request], at: nil, held: true)
            try await Self.run("hostile", fixture)
        }
    }

    @Test func `the page without sessions, and without an owner`() async throws {
        try await WebFixture.with { fixture in
            try await Self.run("empty", fixture)
            await fixture.control.close()
            try await Self.run("ownerless", fixture)
        }
    }

    @Test func `the read-only page`() async throws {
        try await WebFixture.with {
            $0.isReadOnly = true
        } _: { fixture in
            try await fixture.add(6) { "session \($0)" }
            try await Self.run("reader", fixture, token: "web-read.token")
        }
    }

    /// The screenshots stay in `.build/screenshots`.
    @Test func `the page at several widths, light and dark`() async throws {
        try await WebFixture.with { fixture in
            try await fixture.addSessionsForScreenshots()
            try await Self.run("looks", fixture)
        }
    }

    private static func run(_ test: String, _ fixture: WebFixture, token: String = "web.token") async throws {
        let folder = FilePath(FileManager.default.currentDirectoryPath)
        let errors = fixture.folder.appending("browser-errors")
        let program = try StartedProgram(
            folder.appending(".build/browser/bin/python").string,
            [
                folder.appending("Tests/TransferWebTests/Browser/page.py").string, test, fixture.url, try fixture.token(token),
                folder.appending(".build/screenshots").string,
            ], environment: ["PYTHONDONTWRITEBYTECODE": "1"], errors: errors)
        let end = await BlockingIO.run { program.waitForEnd() }
        let message = (try? String(contentsOfFile: errors.string, encoding: .utf8)) ?? ""
        #expect(end?.status == 0, "\(test): \(message.suffix(6_000))")
    }
}

extension WebFixture {
    /// Adds sessions in each state, as in the screenshots of the documentation.
    fileprivate func addSessionsForScreenshots() async throws {
        try await queue.save(Account("studio", endpoints: [memory.endpoint(host: "upload.example.com")], rateLimit: 40 << 20))
        try await queue.save(Account("archive", endpoints: [memory.endpoint(host: "archive.example.com")], maxConcurrentSessions: 2))
        try await queue.deleteAccount("a", cascades: true)
        try await queue.setMaxConcurrentSessions(3, account: nil)
        func add(
            _ name: String, _ files: [(String, Int)], to account: String = "studio", tags: [String] = [], rate: Int64? = nil,
            held: Bool = false
        ) async throws -> SessionID {
            var options = SessionOptions()
            options.rateLimit = rate
            let items = try files.map { TransferItem(try file(UUID().uuidString, size: $0.1), as: $0.0) }
            let request = try SessionRequest.upload(items: items, to: account, name: name, tags: tags, options: options)
            return try await queue.add([request], at: nil, held: held)[0]
        }
        memory.failNext(with: TransferError(.permanent, .tooLarge, "The server accepts at most 4 GiB for each file."), for: "grade.mov")
        _ = try await add("Interview, day 1", [("interview.mov", 3 << 20)], tags: ["night"])
        let failing = try await add("Colour grade", [("grade.mov", 1 << 20)])
        let events = queue.events
        try await queue.start()
        for await event in events where event.session == failing && event.kind.name == "failed" { break }
        // These sessions run while the browser takes the screenshots.
        _ = try await add("Reel 1, camera A", [("reel1.mov", 28 << 20)], tags: ["urgent"], rate: 250 << 10)
        let stills = [("raw0001.dng", 6 << 20), ("raw0002.dng", 6 << 20), ("raw0003.dng", 6 << 20)]
        _ = try await add("Raw stills", stills, to: "archive", rate: 150 << 10)
        _ = try await add("Sound, day 1", [("sound.wav", 8 << 20)], rate: 90 << 10)
        _ = try await add("Reel 2, camera B", [("reel2.mov", 4 << 20)], tags: ["urgent"])
        let later = try await add("Dailies for the lab", [("dailies.mov", 2 << 20)], to: "archive")
        try await queue.update(later, SessionUpdate(notBefore: .set(Date(timeIntervalSinceNow: 36_000))))
        let after = try await add("Contact sheet", [("sheet.pdf", 200 << 10)], to: "archive")
        try await queue.update(after, SessionUpdate(dependency: .set(.after(later))))
        _ = try await add("Backup of the project files", [("project.tar", 6 << 20)], tags: ["night"], held: true)
        let cancelled = try await add("Test exposure", [("test.mov", 1 << 20)])
        try await queue.cancel(cancelled)
        for number in 3...9 { _ = try await add("Reel \(number), camera A", [("reel\(number).mov", 1 << 20)]) }
    }
}
