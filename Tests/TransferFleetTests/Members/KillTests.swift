import Foundation
import ProcessFixture
import TUSLoopback
import Testing
import TransferFleet
import TransferKit

#if canImport(Glibc)
    import Glibc
#endif

/// Members in separate processes, which are killed or suspended.
@Suite(.timeLimit(.minutes(5))) struct KillTests {
    @Test func `after a kill, another member continues the upload, and every file arrives once`() async throws {
        let fixture = try await MemberFixture()
        let reel = try await fixture.add("reel", sizes: [100_000, 8_000_000, 100_000])
        var ids = [reel]
        fixture.server.stopContent(at: 4_000_000)
        var members = [
            "a": try fixture.start("a"), "b": try fixture.start("b"), "c": try fixture.start("c"),
        ]
        try await fixture.waitForBytes(4_000_000, of: "reel-1")
        for number in 0..<6 { ids.append(try await fixture.add("s\(number)", sizes: [30_000, 300_000])) }
        let owner = try #require(try await fixture.owner(of: reel))
        try #require(members[owner]).kill()
        members[owner] = nil
        try await fixture.wait("another member has the session") {
            let current = try await fixture.owner(of: reel)
            return current != nil && current != owner
        }
        fixture.server.stopContent(at: nil)
        try await fixture.waitForAll(ids)
        try fixture.checkArrived("reel", files: 3)
        for number in 0..<6 { try fixture.checkArrived("s\(number)", files: 2) }
        // tus: the server's offset decides where the next member continues, so nothing was stored twice.
        #expect(fixture.server.statistics.bytesStored == 8_200_000 + 6 * 330_000)
        for member in members.values {
            member.send(SIGTERM)
            let end = await BlockingIO.run { member.waitForEnd() }
            #expect(end?.status == 0 && end?.wasKilled == false)
        }
        #expect(try await fixture.fleet.fleet.members().map(\.name) == [owner])
    }

    @Test func `a member that starts again after a kill continues its own session immediately`() async throws {
        let fixture = try await MemberFixture()
        let id = try await fixture.add("reel", sizes: [8_000_000])
        fixture.server.stopContent(at: 4_000_000)
        let first = try fixture.start("a")
        try await fixture.waitForBytes(4_000_000, of: "reel-0")
        first.kill()
        fixture.server.stopContent(at: nil)
        let second = try fixture.start("a")
        try await fixture.waitForAll([id])
        second.kill()
        try fixture.checkArrived("reel", files: 1)
        #expect(fixture.server.statistics.bytesStored == 8_000_000)
        #expect(try await fixture.fleet.fleet.status(of: id).attempts == 2)
    }

    @Test func `a suspended member wakes with a stale lease, and changes nothing`() async throws {
        let fixture = try await MemberFixture()
        let id = try await fixture.add("reel", sizes: [8_000_000])
        fixture.server.stopContent(at: 4_000_000)
        let first = try fixture.start("a")
        try await fixture.waitForBytes(4_000_000, of: "reel-0")
        first.suspend()
        let second = try fixture.start("b")
        try await fixture.wait("the other member has the session") { try await fixture.owner(of: id) == "b" }
        // The stale member wakes while the other one is sending.
        first.send(SIGCONT)
        fixture.server.stopContent(at: nil)
        try await fixture.waitForAll([id])
        try fixture.checkArrived("reel", files: 1)
        #expect(fixture.server.statistics.bytesStored == 8_000_000)
        // It is a member again.
        let next = try await fixture.add("next", sizes: [1_000])
        second.kill()
        try await fixture.waitForAll([next])
        first.kill()
        try fixture.checkArrived("next", files: 1)
    }
}
