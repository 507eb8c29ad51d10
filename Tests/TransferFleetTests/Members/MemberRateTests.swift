import Foundation
import TUSLoopback
import Testing
import TransferFleet
import TransferKit

@Suite(.timeLimit(.minutes(3))) struct MemberRateTests {
    private func limits(_ members: [FleetMember]) async throws -> Set<Int64?> {
        var limits: Set<Int64?> = []
        for member in members { limits.insert(await member.queue.status().rateLimit) }
        return limits
    }

    private func accountLimits(_ members: [FleetMember]) async throws -> Set<Int64?> {
        var limits: Set<Int64?> = []
        for member in members { limits.insert(await member.queue.account("studio")?.account.rateLimit) }
        return limits
    }

    @Test func `members apply their shares to their queues`() async throws {
        let fixture = try await MemberFixture()
        // This limit exists before the first session starts.
        try await fixture.fleet.fleet.setRateLimit(100_000_001, account: "studio")
        let ids = [try await fixture.add("reel", sizes: [6_000_000]), try await fixture.add("note", sizes: [6_000_000])]
        fixture.server.stopContent(at: 3_000_000)
        let members = [try await fixture.member("a"), try await fixture.member("b")]
        try await fixture.run(members) {
            for name in ["reel-0", "note-0"] { try await fixture.waitForBytes(3_000_000, of: name) }
            try await fixture.wait("both members have their shares of the account's limit") {
                try await accountLimits(members) == [50_000_001, 50_000_000]
            }
            #expect(try await limits(members) == [nil])
            try await fixture.fleet.fleet.setRateLimit(200_000_001, account: nil)
            try await fixture.wait("both members have their shares of the fleet's limit") {
                try await limits(members) == [100_000_001, 100_000_000]
            }
            // A member without sessions has no share.
            try await fixture.fleet.fleet.hold(ids[1])
            try await fixture.wait("the other member has the whole limits") {
                let (all, account) = (try await limits(members), try await accountLimits(members))
                return all.contains(200_000_001) && account.contains(100_000_001)
            }
            try await fixture.fleet.fleet.release(ids[1])
            try await fixture.wait("both members have their shares again") {
                let (all, account) = (try await limits(members), try await accountLimits(members))
                return all == [100_000_001, 100_000_000] && account == [50_000_001, 50_000_000]
            }
            fixture.server.stopContent(at: nil)
            try await fixture.waitForAll(ids)
        }
        for name in ["reel", "note"] { try fixture.checkArrived(name, files: 1) }
    }
}
