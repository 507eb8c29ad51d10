import Foundation
import ProcessFixture
import SystemPackage
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
        // The next member continues at the tus server's offset, so the server has stored no byte twice.
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

    /// The member died after the server's response to the creation, and before the member stored the creation in the database.
    @Test func `a small file is not stored twice if its creation was not recorded`() async throws {
        let fixture = try await MemberFixture()
        // The member records the file before it creates the upload.
        try await fixture.rejectProgress("EXISTS (SELECT FROM progress WHERE session = NEW.session)")
        let id = try await fixture.add("note", sizes: [10_000])
        let first = try fixture.start("a")
        try await fixture.wait("the server has created the file") { !fixture.server.statistics.uploads.isEmpty }
        first.kill()
        try await fixture.fleet.query("DROP TRIGGER reject ON progress")
        try await fixture.fleet.query("UPDATE session SET lease_until = clock_timestamp()")
        let second = try fixture.start("b")
        try await fixture.waitForAll([id])
        second.kill()
        #expect(fixture.server.statistics.uploads.count(where: \.isComplete) == 1)
        #expect(fixture.server.statistics.bytesStored == 10_000)
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
        // The stale member wakes while the other member is sending.
        first.send(SIGCONT)
        fixture.server.stopContent(at: nil)
        try await fixture.waitForAll([id])
        try fixture.checkArrived("reel", files: 1)
        #expect(fixture.server.statistics.bytesStored == 8_000_000)
        // The stale member takes sessions again.
        let next = try await fixture.add("next", sizes: [1_000])
        second.kill()
        try await fixture.waitForAll([next])
        first.kill()
        try fixture.checkArrived("next", files: 1)
    }

    /// A library that adds `CLOCK_OFFSET` seconds to the wall clock of a process. Unlike libfaketime, the library does not affect timers that
    /// use other clocks.
    private static let clockLibrary = """
        #define _GNU_SOURCE
        #include <stdlib.h>
        #include <sys/syscall.h>
        #include <sys/time.h>
        #include <time.h>
        #include <unistd.h>

        int clock_gettime(clockid_t clock, struct timespec *now) {
            int result = syscall(SYS_clock_gettime, clock, now);
            if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += atol(getenv("CLOCK_OFFSET"));
            return result;
        }

        int gettimeofday(struct timeval *now, void *zone) {
            struct timespec time;
            clock_gettime(CLOCK_REALTIME, &time);
            *now = (struct timeval) { time.tv_sec, time.tv_nsec / 1000 };
            return 0;
        }

        time_t time(time_t *now) {
            struct timespec time;
            clock_gettime(CLOCK_REALTIME, &time);
            if (now) *now = time.tv_sec;
            return time.tv_sec;
        }
        """

    /// Only the database's clock determines when leases end and sessions start.
    @Test func `members whose clocks are wrong by an hour keep and take over sessions`() async throws {
        let fixture = try await MemberFixture()
        let library = try await fixture.library("clock", Self.clockLibrary)
        let clock: @Sendable (Int) -> [String: String] = { ["LD_PRELOAD": library, "CLOCK_OFFSET": "\($0)"] }
        let shown = try await BlockingIO.run { try StartedProgram.run("date", ["+%s"], environment: clock(3_600)).output }
        let time = Double(String(decoding: shown, as: UTF8.self).trimmingCharacters(in: .newlines))
        #expect(abs(try #require(time) - Date().timeIntervalSince1970 - 3_600) < 600)
        let reel = try await fixture.add("reel", sizes: [8_000_000])
        let path = try fixture.file("later-0", size: 1_000)
        var request = try SessionRequest.upload([path], to: "studio", name: "later")
        request.notBefore = Date(timeIntervalSinceNow: 1_800)
        let later = try await fixture.fleet.fleet.add([request])[0]
        fixture.server.stopContent(at: 4_000_000)
        let fast = try fixture.start("fast", slots: 2, environment: clock(3_600))
        try await fixture.waitForBytes(4_000_000, of: "reel-0")
        // Wait for longer than the duration of a lease.
        let expiry = try await fixture.fleet.query("SELECT lease_until FROM session WHERE id = $1", ["\(reel)"])[0].text(0)
        try await fixture.wait("the lease was renewed for 16 s") {
            let row = try await fixture.fleet.query(
                "SELECT coalesce(lease_until > $2::timestamptz + interval '16 s', true) FROM session WHERE id = $1", ["\(reel)", expiry])[0]
            return try row.flag(0)
        }
        #expect(try await fixture.fleet.fleet.status(of: reel).attempts == 1)
        #expect(try await fixture.owner(of: reel) == "fast")
        let slow = try fixture.start("slow", slots: 2, environment: clock(-3_600))
        try await fixture.wait("the other member joins") {
            try await fixture.fleet.fleet.members().contains { $0.name == "slow" && $0.isLive }
        }
        fast.kill()
        try await fixture.wait("the other member has the session") { try await fixture.owner(of: reel) == "slow" }
        fixture.server.stopContent(at: nil)
        try await fixture.waitForAll([reel])
        try fixture.checkArrived("reel", files: 1)
        #expect(fixture.server.statistics.bytesStored == 8_000_000)
        #expect(try await fixture.fleet.state(of: later) == .waiting)
        slow.kill()
    }
}
