import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// Members in this process, with a real queue, a real tus server and a real database.
@Suite(.timeLimit(.minutes(3))) struct MemberTests {
    @Test func `two members transfer all sessions, and each file arrives once`() async throws {
        let fixture = try await MemberFixture()
        var ids: [SessionID] = []
        for number in 0..<8 { ids.append(try await fixture.add("s\(number)", sizes: [50_000, 0, 200_000])) }
        let members = [try await fixture.member("a"), try await fixture.member("b", slots: 2)]
        try await fixture.run(members) { try await fixture.waitForAll(ids) }
        for number in 0..<8 { try fixture.checkArrived("s\(number)", files: 3) }
        for status in try await fixture.fleet.fleet.sessions(in: .all) {
            #expect(status.statistics.filesDone == 3 && status.statistics.bytesDone == 250_000)
            let items = try await fixture.fleet.fleet.items(of: status.id, from: 0, limit: 10)
            #expect(items.map(\.state) == [.completed, .completed, .completed] && items.allSatisfy { $0.remoteURL != nil })
        }
        #expect(try await fixture.fleet.fleet.members().isEmpty)
    }

    @Test func `a member that ends gives its session back, and another member continues the same upload`() async throws {
        let fixture = try await MemberFixture()
        let id = try await fixture.add("reel", sizes: [100_000, 6_000_000])
        fixture.server.stopContent(at: 3_000_000)
        try await fixture.run([fixture.member("a")]) {
            try await fixture.waitForBytes(3_000_000, of: "reel-1")
        }
        #expect(try await fixture.fleet.state(of: id) == .waiting)
        fixture.server.stopContent(at: nil)
        try await fixture.run([fixture.member("b")]) { try await fixture.waitForAll([id]) }
        try fixture.checkArrived("reel", files: 2)
        #expect(fixture.server.statistics.bytesStored == 6_100_000)
    }

    @Test func `a session that must run now interrupts another one, which resumes`() async throws {
        let fixture = try await MemberFixture()
        let reel = try await fixture.add("reel", sizes: [6_000_000])
        fixture.server.stopContent(at: 3_000_000)
        try await fixture.run([fixture.member("a")]) {
            try await fixture.waitForBytes(3_000_000, of: "reel-0")
            let note = try await fixture.add("note", sizes: [10_000])
            try await fixture.fleet.fleet.run(note)
            try await fixture.waitForAll([note])
            fixture.server.stopContent(at: nil)
            try await fixture.waitForAll([reel])
        }
        try fixture.checkArrived("reel", files: 1)
        try fixture.checkArrived("note", files: 1)
        #expect(fixture.server.statistics.bytesStored == 6_010_000)
    }

    @Test func `a paused session keeps its slot and resumes`() async throws {
        let fixture = try await MemberFixture()
        let reel = try await fixture.add("reel", sizes: [6_000_000])
        let note = try await fixture.add("note", sizes: [1_000])
        fixture.server.stopContent(at: 3_000_000)
        let member = try await fixture.member("a")
        try await fixture.run([member]) {
            try await fixture.waitForBytes(3_000_000, of: "reel-0")
            #expect(try await fixture.fleet.fleet.pause(reel) == .paused)
            try await fixture.wait("the member pauses") { try await member.localState(of: reel) == .paused }
            #expect(try await fixture.fleet.state(of: note) == .waiting)
            fixture.server.stopContent(at: nil)
            try await fixture.fleet.fleet.resume(reel)
            try await fixture.waitForAll([reel, note])
        }
        try fixture.checkArrived("reel", files: 1)
    }

    @Test func `a cancelled session stops, and a retry continues its upload`() async throws {
        let fixture = try await MemberFixture()
        let reel = try await fixture.add("reel", sizes: [6_000_000])
        fixture.server.stopContent(at: 3_000_000)
        try await fixture.run([fixture.member("a")]) {
            try await fixture.waitForBytes(3_000_000, of: "reel-0")
            try await fixture.fleet.fleet.cancel(reel)
            try await fixture.wait("the member stops") { try await fixture.owner(of: reel) == nil }
            fixture.server.stopContent(at: nil)
            try await fixture.fleet.fleet.retry(reel)
            try await fixture.waitForAll([reel])
        }
        try fixture.checkArrived("reel", files: 1)
        #expect(fixture.server.statistics.bytesStored == 6_000_000)
    }

    @Test func `a failed session reports its error and its failed files`() async throws {
        let fixture = try await MemberFixture()
        let id = try await fixture.add("gone", sizes: [1_000, 2_000])
        try FileManager.default.removeItem(atPath: fixture.folder.appending("gone-0").string)
        try await fixture.run([fixture.member("a")]) {
            try await fixture.waitForAll([id], .failed)
            #expect(try await fixture.fleet.fleet.status(of: id).error != nil)
            #expect(try await fixture.fleet.fleet.items(of: id, from: 0, limit: 10).map(\.state) == [.failed, .completed])
            _ = try fixture.file("gone-0", size: 1_000)
            try await fixture.fleet.fleet.retry(id)
            try await fixture.waitForAll([id])
        }
        try fixture.checkArrived("gone", files: 2)
    }

    @Test func `a member without credentials leaves the account to other members`() async throws {
        struct Token: CredentialProvider {
            func secret(for reference: CredentialReference) async throws -> Secret { Secret("token") }
        }
        let fixture = try await MemberFixture(credentials: [.bearer(.environment("TRANSFERKIT_TEST_UNSET"))])
        let id = try await fixture.add("s", sizes: [1_000])
        let first = try await fixture.member("a")
        try await fixture.run([first]) {
            try await fixture.wait("the member refuses the account") {
                try await fixture.fleet.fleet.members().first?.refusedAccounts == ["studio"]
            }
            try await fixture.wait("the session is given back") { try await fixture.owner(of: id) == nil }
            #expect(try await fixture.fleet.fleet.account("studio")?.blockingError != nil)
            try await fixture.run([fixture.member("b", credentials: Token())]) { try await fixture.waitForAll([id]) }
        }
        try fixture.checkArrived("s", files: 1)
    }

    @Test func `a removed member ends, and its session continues on another member`() async throws {
        let fixture = try await MemberFixture()
        let id = try await fixture.add("reel", sizes: [6_000_000])
        fixture.server.stopContent(at: 3_000_000)
        let first = try await fixture.member("a")
        let task = Task { try await first.run() }
        try await fixture.waitForBytes(3_000_000, of: "reel-0")
        try await fixture.fleet.fleet.evict("a")
        await #expect(throws: QueueError.self) { try await task.value }
        fixture.server.stopContent(at: nil)
        try await fixture.run([fixture.member("b")]) { try await fixture.waitForAll([id]) }
        try fixture.checkArrived("reel", files: 1)
    }
}
