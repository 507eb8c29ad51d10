import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferFleet
import TransferKit
import TransportTUS

/// Requests that end the waits of a member's sessions. The server requests delays that are longer than the tests.
@Suite(.timeLimit(.minutes(3))) struct MemberRequestTests {
    private enum Request: CaseIterable {
        case run, runWithoutNotification, retryEndpoints, unblockAccount, saveAccount
    }

    /// Adds a session, and returns once the session waits in its member's queue, because the server requested a delay.
    private func addDelayedSession(_ fixture: MemberFixture, _ member: FleetMember) async throws -> SessionID {
        fixture.server.inject(.answer(status: 503, headers: ["Retry-After": "3000"], method: "POST"))
        let id = try await fixture.add("reel", sizes: [1_000])
        try await fixture.wait("the session waits") {
            guard fixture.server.statistics.requests["POST"] == 1 else { return false }
            return try await member.localState(of: id) == .waiting
        }
        return id
    }

    @Test(arguments: Request.allCases) private func `a request ends the wait of a session that a member has`(_ request: Request)
        async throws
    {
        let fixture = try await MemberFixture()
        let fleet = fixture.fleet.fleet
        let member = try await fixture.member("a")
        try await fixture.run([member]) {
            let id = try await addDelayedSession(fixture, member)
            switch request {
            case .run: try await fleet.run(id)
            case .runWithoutNotification:
                try await fixture.fleet.query("UPDATE session SET run_requests = run_requests + 1 WHERE id = $1", ["\(id)"])
            case .retryEndpoints: try await fleet.retryEndpoints(of: "studio")
            case .unblockAccount: try await fleet.unblockAccount("studio")
            case .saveAccount:
                let account = try #require(try await fleet.account("studio")).account
                try await fleet.save(account)
            }
            try await fixture.waitForAll([id])
            #expect(try await fleet.status(of: id).attempts == 1)
        }
        try fixture.checkArrived("reel", files: 1)
    }

    /// The server has asked all clients to back off, so the member's queue also delays other sessions.
    @Test(arguments: [false, true]) func `a session that was run or retried does not wait once a member has taken it`(isRetried: Bool)
        async throws
    {
        let fixture = try await MemberFixture()
        let fleet = fixture.fleet.fleet
        let member = try await fixture.member("a", slots: 2)
        try await fixture.run([member]) {
            let busy = try await addDelayedSession(fixture, member)
            let path = try fixture.file("note-0", size: 1_000)
            let note = try await fleet.add([.upload([path], to: "studio", name: "note")], held: true)[0]
            if isRetried {
                try await fleet.cancel(note)
                try await fleet.retry(note)
            } else {
                try await fleet.run(note)
            }
            try await fixture.waitForAll([note])
            try await fleet.run(busy)
            try await fixture.waitForAll([busy])
        }
        try fixture.checkArrived("note", files: 1)
        try fixture.checkArrived("reel", files: 1)
    }

    @Test func `running a paused session resumes the session, and also ends the delay that the server then requests`() async throws {
        let fixture = try await MemberFixture()
        let fleet = fixture.fleet.fleet
        let reel = try await fixture.add("reel", sizes: [6_000_000])
        fixture.server.stopContent(at: 3_000_000)
        let member = try await fixture.member("a")
        try await fixture.run([member]) {
            try await fixture.waitForBytes(3_000_000, of: "reel-0")
            _ = try await fleet.pause(reel)
            try await fixture.wait("the member pauses") { try await member.localState(of: reel) == .paused }
            fixture.server.stopContent(at: nil)
            // The first request after the resumption.
            fixture.server.inject(.answer(status: 503, headers: ["Retry-After": "3000"], method: "HEAD"))
            try await fleet.run(reel)
            try await fixture.waitForAll([reel])
        }
        try fixture.checkArrived("reel", files: 1)
    }

    /// An earlier process of the member was killed while its queue added the session.
    @Test func `a member that starts again runs a session that its queue had added only partly`() async throws {
        let fixture = try await MemberFixture()
        let path = try fixture.file("reel-0", size: 100_000)
        let request = try SessionRequest.upload([path], to: "studio", name: "reel")
        let queue = try await TransferQueue(storage: .folder(fixture.folder.appending("store-a")), transports: [TUSTransport()])
        let account = try #require(try await fixture.fleet.fleet.account("studio")).account
        try await queue.save(account)
        // Until a queue has added the whole session, the session is a draft.
        try await queue.saveDrafts([request])
        await queue.shutdown()
        let id = try await fixture.fleet.fleet.add([request])[0]
        #expect(id == request.id)
        try await fixture.run([fixture.member("a")]) {
            try await fixture.wait("the session has ended") { try await fixture.fleet.state(of: id).isEnded }
        }
        #expect(try await fixture.fleet.state(of: id) == .completed)
        try fixture.checkArrived("reel", files: 1)
    }
}
