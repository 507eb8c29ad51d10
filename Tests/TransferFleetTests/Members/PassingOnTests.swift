import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferFleet
import TransferKit
import TransportSFTP
import TransportTUS

/// A session that one member can't run, but another member can.
@Suite(.timeLimit(.minutes(3))) struct PassingOnTests {
    /// Adds a live member that takes no sessions.
    private func addIdleMember(_ name: String, _ fixture: MemberFixture) async throws {
        try await fixture.fleet.join(name)
        try await fixture.fleet.query(
            "UPDATE member SET live_until = clock_timestamp() + interval '1 hour' WHERE name = $1", [name])
    }

    @Test func `a session whose file is missing on one member runs on another member`() async throws {
        let fixture = try await MemberFixture()
        try await addIdleMember("idle", fixture)
        let reel = try await fixture.add("reel", sizes: [100_000, 200_000])
        let path = fixture.folder.appending("reel-1").string
        try FileManager.default.removeItem(atPath: path)
        try await fixture.run([fixture.member("a")]) {
            try await fixture.wait("the member leaves the session to other members") {
                try await !fixture.fleet.query("SELECT 1 FROM session_refusal WHERE session = $1 AND member = 'a'", ["\(reel)"]).isEmpty
            }
            // The member takes other sessions.
            let note = try await fixture.add("note", sizes: [1_000])
            try await fixture.waitForAll([note])
            let status = try await fixture.fleet.fleet.status(of: reel)
            #expect(status.state == .waiting && status.error?.message.contains(path) == true)
            #expect(try await fixture.fleet.fleet.items(of: reel, from: 0, limit: 10).map(\.state) == [.completed, .pending])
            try await fixture.fleet.fleet.evict("idle")
            let why = try await fixture.fleet.fleet.status(of: reel).why?.description ?? ""
            #expect(why.contains("The session may run on any member, but not on \"a\" (") && why.contains(path), "\(why)")
            _ = try fixture.file("reel-1", size: 200_000)
            try await fixture.run([fixture.member("b")]) { try await fixture.waitForAll([reel]) }
        }
        try fixture.checkArrived("reel", files: 2)
        #expect(try await fixture.fleet.fleet.status(of: reel).error == nil)
    }

    @Test func `a session that no live member can run fails, and a retry tries all members again`() async throws {
        let fixture = try await MemberFixture()
        let reel = try await fixture.add("reel", sizes: [100_000])
        let path = fixture.folder.appending("reel-0").string
        try FileManager.default.removeItem(atPath: path)
        try await fixture.run([fixture.member("a"), fixture.member("b")]) {
            try await fixture.waitForAll([reel], .failed)
            #expect(try await fixture.fleet.fleet.items(of: reel, from: 0, limit: 10).first?.error?.message.contains(path) == true)
            _ = try fixture.file("reel-0", size: 100_000)
            try await fixture.fleet.fleet.retry(reel)
            try await fixture.waitForAll([reel])
        }
        try fixture.checkArrived("reel", files: 1)
    }

    /// - Parameter hasOther: Whether another live member may run the session.
    @Test(arguments: [false, true]) func `a session that a queue rejects fails or is left to other members, and the next session runs`(
        hasOther: Bool
    ) async throws {
        let fixture = try await MemberFixture()
        if hasOther { try await addIdleMember("idle", fixture) }
        let reel = try await fixture.add("reel", sizes: [6_000_000])
        fixture.server.stopContent(at: 3_000_000)
        try await fixture.run([fixture.member("a", slots: 2)]) {
            try await fixture.waitForBytes(3_000_000, of: "reel-0")
            try await fixture.fleet.fleet.stop(.drain, deadline: nil)
            let bad = try await fixture.add("bad", sizes: [10_000])
            // The stored content now describes a session that the member's queue already has.
            try await fixture.fleet.query(
                "UPDATE content SET draft = (SELECT draft FROM content WHERE session = $2) WHERE session = $1", ["\(bad)", "\(reel)"])
            let good = try await fixture.add("good", sizes: [10_000])
            try await fixture.fleet.fleet.start()
            try await fixture.wait("the session has an error") { try await fixture.fleet.fleet.status(of: bad).error != nil }
            let status = try await fixture.fleet.fleet.status(of: bad)
            #expect(status.state == (hasOther ? .waiting : .failed))
            #expect(status.error?.message == "The session \(reel) already exists.")
            try await fixture.waitForAll([good])
            fixture.server.stopContent(at: nil)
            try await fixture.waitForAll([reel])
            #expect(try await fixture.fleet.fleet.status(of: bad).attempts == 1)
        }
        try fixture.checkArrived("good", files: 1)
        try fixture.checkArrived("reel", files: 1)
    }

    @Test func `a member without the transport leaves the account to other members`() async throws {
        let fixture = try await MemberFixture()
        let reel = try await fixture.add("reel", sizes: [100_000])
        try await fixture.run([fixture.member("a", transports: [SFTPTransport()])]) {
            try await fixture.wait("the member refuses the account") {
                try await fixture.fleet.fleet.members().first?.refusedAccounts == ["studio"]
            }
            let error = try await fixture.fleet.fleet.account("studio")?.blockingError
            #expect(error?.message == "The member \"a\" has no transport for the account \"studio\" (tus).")
            try await fixture.run([fixture.member("b")]) { try await fixture.waitForAll([reel]) }
        }
        try fixture.checkArrived("reel", files: 1)
    }
}
