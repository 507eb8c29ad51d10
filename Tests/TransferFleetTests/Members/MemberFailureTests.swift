import Foundation
import ScriptedHTTP
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// Failures of a member's own queue database, of its reports, and of single sessions. Other sessions continue, and no session has two owners.
@Suite(.timeLimit(.minutes(3))) struct MemberFailureTests {
    private static func message(in log: LogLines, beginsWith text: String) -> Bool {
        log.texts().contains { $0.hasPrefix(text) }
    }

    @Test func `a member that can't remove a session from its own queue keeps the lease and stops sending`() async throws {
        let fixture = try await MemberFixture()
        let reel = try await fixture.add("reel", sizes: [24_000_000])
        fixture.server.stopContent(at: 3_000_000)
        let log = LogLines()
        let member = try await fixture.member("a", logger: log.logger)
        try await fixture.run([member]) {
            try await fixture.waitForBytes(3_000_000, of: "reel-0")
            let database = try await RefusingDatabase(fixture.folder.appending("store-a"))
            try await fixture.fleet.fleet.hold(reel)
            try await fixture.wait("the member can't remove the session from its own queue") {
                Self.message(in: log, beginsWith: "Cannot remove a session from this member's queue")
            }
            // A run that is still sending could now finish the file.
            fixture.server.stopContent(at: nil)
            try await fixture.waitForRenewals(2, of: reel)
            #expect(try await fixture.owner(of: reel) == "a")
            try await database.accept()
            try await fixture.wait("the member gives the session back") { try await fixture.owner(of: reel) == nil }
            #expect(try await member.localState(of: reel) == nil)
            #expect(fixture.server.statistics.uploads.allSatisfy { !$0.isComplete })
            try await fixture.fleet.fleet.release(reel)
            try await fixture.waitForAll([reel])
        }
        try fixture.checkArrived("reel", files: 1)
    }

    @Test func `a member that stops while its own database rejects changes keeps its lease`() async throws {
        let fixture = try await MemberFixture()
        let reel = try await fixture.add("reel", sizes: [6_000_000])
        fixture.server.stopContent(at: 3_000_000)
        let member = try await fixture.member("a")
        let task = Task { try await member.run() }
        try await fixture.waitForBytes(3_000_000, of: "reel-0")
        let database = try await RefusingDatabase(fixture.folder.appending("store-a"))
        await member.stop()
        try await task.value
        try await database.accept()
        // The queue of the first member may still have the session, so the session continues only after its lease ends.
        #expect(try await fixture.owner(of: reel) == "a")
        fixture.server.stopContent(at: nil)
        try await fixture.run([fixture.member("b")]) { try await fixture.waitForAll([reel]) }
        try fixture.checkArrived("reel", files: 1)
    }

    @Test func `a member keeps its leases while a long transaction holds the fleet's lock`() async throws {
        let fixture = try await MemberFixture()
        let reel = try await fixture.add("reel", sizes: [6_000_000])
        let note = try await fixture.add("note", sizes: [4_000_000])
        fixture.server.stopContent(at: 3_000_000)
        let member = try await fixture.member("a", slots: 2)
        try await fixture.run([member]) {
            try await fixture.waitForBytes(3_000_000, of: "reel-0")
            try await fixture.waitForBytes(3_000_000, of: "note-0")
            let link = try PostgresLink(try PostgresURL(fixture.fleet.url))
            try link.execute("SELECT pg_advisory_lock(1953198193, 1)")
            // The session "note" ends, but the member can't report its end. The session "reel" is larger, so it continues.
            fixture.server.stopContent(at: 5_000_000)
            try await fixture.wait("the note is transferred") {
                fixture.server.statistics.uploads.contains { $0.filename == "note-0" && $0.isComplete }
            }
            let lease = "SELECT lease_until FROM session WHERE id = $1"
            let before = try await fixture.fleet.query(lease, ["\(reel)"])[0].text(0)
            try await fixture.wait("the lease was renewed for 12 s, or is lost") {
                let renewed = try await fixture.fleet.query(
                    "SELECT lease_until > $2::timestamptz + interval '12 s' FROM session WHERE id = $1", ["\(reel)", before])[0].flag(0)
                let state = try await member.localState(of: reel)
                return renewed || state == nil
            }
            #expect(try await member.localState(of: reel) == .running)
            try link.execute("SELECT pg_advisory_unlock(1953198193, 1)")
            fixture.server.stopContent(at: nil)
            try await fixture.waitForAll([reel, note])
            for id in [reel, note] { #expect(try await fixture.fleet.fleet.status(of: id).attempts == 1) }
        }
        try fixture.checkArrived("reel", files: 1)
        try fixture.checkArrived("note", files: 1)
    }

    @Test func `a pause that the member's own database rejects is retried`() async throws {
        let fixture = try await MemberFixture()
        let reel = try await fixture.add("reel", sizes: [6_000_000])
        fixture.server.stopContent(at: 3_000_000)
        let member = try await fixture.member("a")
        try await fixture.run([member]) {
            try await fixture.waitForBytes(3_000_000, of: "reel-0")
            let database = try await RefusingDatabase(fixture.folder.appending("store-a"))
            _ = try await fixture.fleet.fleet.pause(reel)
            // The member has tried to pause after the first of these renewals.
            try await fixture.waitForRenewals(3, of: reel)
            try await database.accept()
            try await fixture.waitForRenewals(3, of: reel)
            try await fixture.wait("the member pauses") { try await member.localState(of: reel) == .paused }
            fixture.server.stopContent(at: nil)
            try await fixture.fleet.fleet.resume(reel)
            try await fixture.waitForAll([reel])
        }
        try fixture.checkArrived("reel", files: 1)
    }

    @Test func `progress that the database rejects delays only its own session`() async throws {
        let fixture = try await MemberFixture()
        let bad = try await fixture.add("bad", sizes: [10_000])
        try await fixture.rejectProgress("NEW.session = '\(bad)'")
        let member = try await fixture.member("a", slots: 2)
        try await fixture.run([member]) {
            let good = try await fixture.add("good", sizes: [10_000])
            try await fixture.waitForAll([good])
            #expect(try await fixture.fleet.state(of: bad) == .running)
            try await fixture.fleet.query("DROP TRIGGER reject ON progress")
            try await fixture.fleet.fleet.hold(bad)
            try await fixture.wait("the member stops") { try await fixture.owner(of: bad) == nil }
            try await fixture.fleet.fleet.release(bad)
            try await fixture.waitForAll([bad])
        }
        try fixture.checkArrived("good", files: 1)
    }

    @Test func `a session that a member's queue could not add waits without priority, and reports the reason`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        let error = TransferError(.transient, .diskFull, "The disk is full.")
        #expect(
            try await fleet.store.locked {
                try $0.giveBack(lease.reference, statistics: nil, isInterrupted: false, error: error)
            })
        #expect(try await fleet.fleet.status(of: ids[0]).error == error)
        try await fleet.fleet.runNext(ids[1])
        #expect(try await fleet.store.take(for: member).map(\.id) == [ids[1]])
        #expect(try await fleet.query("SELECT lane FROM session WHERE id = $1", ["\(ids[0])"])[0].integer(0) == 4)
    }
}
