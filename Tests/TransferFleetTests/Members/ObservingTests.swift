import Foundation
import ProcessFixture
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// The events of a fleet, and the programs that show them: `watch` and the web page.
@Suite(.timeLimit(.minutes(3))) struct ObservingTests {
    /// A reader that starts again at a revision gets only the later events.
    @Test func `the stream has recorded events, new events and progress`() async throws {
        let fixture = try await MemberFixture()
        let first = try await fixture.add("first", sizes: [10_000])
        let start = try await fixture.fleet.fleet.status().revision
        let reel = try await fixture.add("reel", sizes: [6_000_000])
        fixture.server.stopContent(at: 3_000_000)
        try await fixture.run([fixture.member("a")]) {
            var hasProgress = false
            var revisions: [UInt64] = []
            for try await event in fixture.fleet.fleet.eventStream(since: 0) {
                if !event.isProgress { revisions.append(event.revision) }
                if case .progress(reel, let figures) = event.kind, figures.bytesSent >= 3_000_000 {
                    hasProgress = true
                    fixture.server.stopContent(at: nil)
                }
                if case .completed(reel) = event.kind { break }
            }
            #expect(hasProgress)
            #expect(revisions == Array(1...UInt64(revisions.count)))
        }
        for try await event in fixture.fleet.fleet.eventStream(since: start) where !event.isProgress {
            #expect(event.revision == start + 1)
            break
        }
        #expect(try await fixture.fleet.state(of: first) == .completed)
    }

    /// The stream reports a gap in place of events that this version can't read, that were removed, or that a restored database does not have.
    @Test func `the stream reports a gap in place of missing events`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.add(2)
        let last = try await fleet.fleet.status().revision
        try await fleet.query("UPDATE event SET kind = '?' WHERE revision = 2")
        var kinds: [QueueEvent.Kind] = []
        for try await event in fleet.fleet.eventStream(since: 0) {
            kinds.append(event.kind)
            if event.revision == 3 { break }
        }
        #expect(kinds.count == 3 && kinds[1] == .gap(from: 2, to: 2))
        // A batch of unreadable events does not hide the later events.
        try await fleet.query("UPDATE event SET kind = '?' WHERE revision < 3")
        let unreadable = try await fleet.store.changes(after: 0, limit: 2)
        #expect(unreadable.events.isEmpty && unreadable.end == 2 && unreadable.running == nil)
        try await fleet.query("DELETE FROM event")
        for (revision, gap) in [(UInt64(1), QueueEvent.Kind.gap(from: 2, to: last)), (last + 5, .gap(from: last + 1, to: last + 5))] {
            for try await event in fleet.fleet.eventStream(since: revision) {
                #expect(event.kind == gap && event.revision == last)
                break
            }
        }
    }

    /// With `--follow`, watch continues after the database was restarted. Without `--follow`, watch ends with a message.
    @Test(arguments: [true, false]) func `watch survives an outage only with --follow`(follows: Bool) async throws {
        let database = try PostgresServer()
        let fleet = try await FleetFixture(server: database)
        let program = FilePath(MemberFixture.program).removingLastComponent().appending("transferq").string
        let watch = try StartedProgram(program, ["--fleet", fleet.url, "watch"] + (follows ? ["--follow"] : []))
        defer { watch.kill() }
        let first = try await fleet.add([FleetFixture.draft("first")])
        try await fleet.fleet.hold(first[0])
        _ = try await output(of: watch, through: "first")
        await BlockingIO.run { database.stop() }
        if !follows {
            let end = await BlockingIO.run { watch.waitForEnd() }
            #expect(end?.status == 3)
        }
        try await BlockingIO.run { try database.restart() }
        guard follows else { return }
        try await fleet.add([FleetFixture.draft("second")])
        try await fleet.fleet.hold(try await fleet.fleet.sessionIDs()[1])
        #expect(try await output(of: watch, through: "second").contains("second"))
    }

    /// Reads the output of a program until the output contains a text, or ends.
    private func output(of program: StartedProgram, through end: String) async throws -> String {
        try await BlockingIO.run {
            var text = ""
            while !text.contains(end) {
                let received = try program.read()
                guard !received.isEmpty else { break }
                text += String(decoding: received, as: UTF8.self)
            }
            return text
        }
    }

    @Test func `watch prints the events of a fleet`() async throws {
        let fixture = try await MemberFixture()
        let program = FilePath(MemberFixture.program).removingLastComponent().appending("transferq").string
        let watch = try StartedProgram(program, ["--fleet", fixture.fleet.url, "watch"])
        let id = try await fixture.add("reel", sizes: [10_000])
        try await fixture.run([fixture.member("a")]) { try await fixture.waitForAll([id]) }
        let text = try await output(of: watch, through: "completed")
        watch.kill()
        #expect(text.contains("reel") && text.contains("completed"), "\(text)")
        let hook = try await BlockingIO.run {
            try StartedProgram.run("sh", ["-c", "exec \"$0\" --fleet \"$1\" watch --exec true 2>&1", program, fixture.fleet.url])
        }
        #expect(hook.status == 2 && String(decoding: hook.output, as: UTF8.self).contains("can't be used with --fleet"))
    }

    @Test func `the web server shows and changes a fleet`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let web = try await FleetWeb(of: fleet)
        defer { web.stop() }
        let (site, token) = (web.site, web.token)
        func curl(_ arguments: String...) async throws -> String {
            let words = ["--silent", "--header", "Authorization: Bearer \(token)"] + arguments
            return try await BlockingIO.run { String(decoding: try StartedProgram.run("curl", words).output, as: UTF8.self) }
        }
        let page = try await curl("\(site)/")
        #expect(page.contains("s0") && page.contains("s1") && !page.contains("\(Int.max)"), "\(page.prefix(2_000))")
        let events = try StartedProgram(
            "curl", ["--silent", "--no-buffer", "--header", "Authorization: Bearer \(token)", "\(site)/api/v1/events"])
        defer { events.kill() }
        _ = try await BlockingIO.run { try events.read() }
        let response = try await curl(
            "--request", "POST", "--json", "{}", "--write-out", " %{http_code}", "\(site)/api/v1/sessions/\(ids[1])/hold")
        #expect(response.hasSuffix(" 200") || response.hasSuffix(" 204"), "\(response)")
        #expect(try await fleet.state(of: ids[1]) == .held)
        #expect(try await output(of: events, through: "held").contains("held"))
    }
}
