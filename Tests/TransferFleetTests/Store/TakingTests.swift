import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferFleet
import TransferKit

@Suite struct TakingTests {
    @Test func `sessions are taken in order, and each session is taken by one member`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(5)
        let (first, second) = (try await fleet.join("first", slots: 2), try await fleet.join("second", slots: 2))
        #expect(try await fleet.store.take(for: first).map(\.id) == [ids[0], ids[1]])
        #expect(try await fleet.store.take(for: second).map(\.id) == [ids[2], ids[3]])
        #expect(try await fleet.store.take(for: first).isEmpty)
        #expect(try await fleet.fleet.status(of: ids[4]).why == .queueLimit)
    }

    @Test func `a member with nothing to take does not wait for the fleet's lock`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let (busy, idle) = (try await fleet.join("busy"), try await fleet.join("idle"))
        try await fleet.fleet.setMaxConcurrentSessions(1, account: "studio")
        let lease = try #require(try await fleet.store.take(for: busy).first)
        let other = FleetStore(try PostgresURL(fleet.url))
        // Takes the fleet's lock by its key.
        try await other.unlocked { _ = try $0.query("SELECT pg_advisory_lock(1953198193, 1)") }
        #expect(try await fleet.store.take(for: idle).isEmpty)
        await other.connection.close()
        #expect(try await fleet.finish(lease))
        #expect(try await fleet.store.take(for: idle).map(\.id) == [ids[1]])
    }

    @Test func `only the members that a change concerns are notified`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let member = try await fleet.join("m", slots: 2)
        let listener = PostgresConnection(try PostgresURL(fleet.url)) { try $0.execute("LISTEN transferq_fleet") }
        #expect(try await listener.awaitNotifications(timeout: .zero).isEmpty)
        #expect(try await fleet.store.take(for: member).count == 2)
        try await fleet.query("SELECT pg_notify('transferq_fleet', 'end')")
        // Taking sessions notifies no member, because no other session can start.
        #expect(try await listener.awaitNotifications(timeout: .seconds(60)) == ["end"])
        // Each of these changes leads to a request to the session's member, and may allow another session to start.
        let changes: [() async throws -> Void] = [
            { try await fleet.fleet.pause(ids[0]) }, { try await fleet.fleet.resume(ids[0]) },
            { try await fleet.fleet.run(fleet.add(1)[0]) }, { try await fleet.fleet.stop(.interrupt, deadline: nil) },
            { try await fleet.fleet.remove(ids[0], isForced: true) },
        ]
        for change in changes {
            try await change()
            try await fleet.query("SELECT pg_notify('transferq_fleet', 'end')")
            var found: Set<String> = []
            // PostgreSQL delivers notifications in the order of the commits.
            while !found.contains("end") { found.formUnion(try await listener.awaitNotifications(timeout: .seconds(60))) }
            #expect(found == ["", "m", "end"])
        }
        await listener.close()
    }

    @Test func `a session that ended frees a slot`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let member = try await fleet.join("m")
        let lease = try #require(try await fleet.store.take(for: member).first)
        #expect(try await fleet.finish(lease))
        #expect(try await fleet.state(of: ids[0]) == .completed)
        #expect(try await fleet.store.take(for: member).map(\.id) == [ids[1]])
    }

    @Test func `the limits of the fleet and of an account count leases`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.fleet.save(Account("other", endpoints: [Endpoint(transport: "tus", address: "http://127.0.0.1:9/o/")]))
        try await fleet.fleet.setMaxConcurrentSessions(2, account: "studio")
        try await fleet.fleet.setMaxConcurrentSessions(3, account: nil)
        let studio = try await fleet.add(3)
        let other = try await fleet.add(2, account: "other")
        let (first, second) = (try await fleet.join("first", slots: 4), try await fleet.join("second", slots: 4))
        let taken = try await fleet.store.take(for: first)
        #expect(taken.map(\.id) == [studio[0], studio[1], other[0]])
        #expect(try await fleet.store.take(for: second).isEmpty)
        #expect(try await fleet.fleet.status(of: studio[2]).why == .accountLimit)
        // A dead member frees its slots, because the limits count leases.
        try await fleet.endLeases(of: first)
        #expect(try await fleet.store.take(for: second).map(\.id) == [studio[0], studio[1], other[0]])
    }

    @Test func `runNext and moves change which session is taken next`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(4)
        try await fleet.fleet.runNext(ids[2])
        try await fleet.fleet.runNext(ids[1])
        try await fleet.fleet.move(ids[3], to: .front)
        let member = try await fleet.join("m", slots: 4)
        #expect(try await fleet.store.take(for: member).map(\.id) == [ids[1], ids[2], ids[3], ids[0]])
    }

    @Test func `held, scheduled and dependent sessions are skipped`() async throws {
        let fleet = try await FleetFixture()
        let drafts = [
            FleetFixture.draft("a"), FleetFixture.draft("b", notBefore: Date(timeIntervalSinceNow: 3_600)), FleetFixture.draft("c"),
        ]
        var ids = try await fleet.add(drafts)
        ids += try await fleet.add([FleetFixture.draft("d", after: ids[2]), FleetFixture.draft("e", after: ids[0], acceptsAnyEnd: true)])
        try await fleet.fleet.hold(ids[0])
        let member = try await fleet.join("m", slots: 5)
        let taken = try await fleet.store.take(for: member)
        #expect(taken.map(\.id) == [ids[2]])
        #expect(try await fleet.fleet.status(of: ids[3]).why == .after(ids[2], .running))
        #expect(try await fleet.finish(taken[0]))
        try await fleet.fleet.cancel(ids[0])
        #expect(try await fleet.store.take(for: member).map(\.id) == [ids[3], ids[4]])
        // `run` overrides the start time.
        try await fleet.fleet.run(ids[1])
        #expect(try await fleet.store.take(for: member).map(\.id) == [ids[1]])
    }

    @Test func `a dependent session waits until the member has stopped the cancelled session`() async throws {
        for operation in [SessionOperation.cancel(), .remove(isForced: true)] {
            let fleet = try await FleetFixture()
            var ids = try await fleet.add(1)
            ids += try await fleet.add([FleetFixture.draft("a", after: ids[0], acceptsAnyEnd: true)])
            let member = try await fleet.join("m", slots: 5)
            let lease = try #require(try await fleet.store.take(for: member).first)
            try await fleet.fleet.apply(operation, to: .id(ids[0]))
            if case .cancel = operation {
                ids += try await fleet.add([FleetFixture.draft("b", after: ids[0], acceptsAnyEnd: true)])
            }
            #expect(try await fleet.store.take(for: member).isEmpty, "\(operation)")
            #expect(try await fleet.giveBack(lease))
            #expect(try await fleet.store.take(for: member).map(\.id) == Array(ids.dropFirst()), "\(operation)")
        }
    }

    @Test func `a strict fleet starts no session before all earlier sessions have ended`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(3)
        try await fleet.query("UPDATE fleet SET is_strict = true")
        try await fleet.fleet.hold(ids[0])
        let member = try await fleet.join("m", slots: 3)
        #expect(try await fleet.store.take(for: member).isEmpty)
        try await fleet.fleet.release(ids[0])
        let lease = try #require(try await fleet.store.take(for: member).first)
        #expect(lease.id == ids[0])
        #expect(try await fleet.store.take(for: member).isEmpty)
        #expect(try await fleet.finish(lease, error: TransferError(.permanent, .invalidResponse, "no")))
        #expect(try await fleet.store.take(for: member).map(\.id) == [ids[1]])
    }

    @Test func `a session runs only on members that may run it, and reports why it waits`() async throws {
        let fleet = try await FleetFixture()
        let pinned = try await fleet.add(1, place: .member("b"))
        let fast = try await fleet.add(1, place: .label("fast"))
        let any = try await fleet.add(1)
        let first = try await fleet.join("a", slots: 3)
        #expect(try await fleet.store.take(for: first).map(\.id) == any)
        #expect(try await fleet.fleet.status(of: pinned[0]).why == .noHost("the member \"b\""))
        #expect(try await fleet.fleet.status(of: fast[0]).why == .noHost("members with the label \"fast\""))
        let second = try await fleet.join("b", slots: 3, labels: ["slow", "fast"])
        #expect(try await fleet.store.take(for: second).map(\.id) == pinned + fast)
    }

    @Test func `sessions with files in shared folders may run on any member`() async throws {
        let fixture = try await FleetFixture()
        let root = FilePath(FileManager.default.temporaryDirectory.appending(path: "shared-\(UUID().uuidString)").path)
        defer { try? FileManager.default.removeItem(atPath: root.string) }
        for name in ["in/reel", "in/note", "inner/reel", "tmp/reel", "out/2026/note", "other/note"] {
            let path = URL(filePath: root.pushing(FilePath(name)).string)
            try FileManager.default.createDirectory(at: path.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data("x".utf8).write(to: path)
        }
        let queue = try Fleet(fixture.url, place: .member("b"), sharedFolders: [root.appending("in"), root.appending("out")])
        func upload(_ names: String...) throws -> SessionRequest {
            try .upload(names.map { root.pushing(FilePath($0)) }, to: "studio")
        }
        try await queue.add([
            upload("in/reel", "in/note"), upload("in/note", "tmp/reel"), upload("inner/reel"), upload("in/../tmp/reel"),
            .download(["reel"], from: "studio", to: root.pushing("out/2026")),
            .download(["reel"], from: "studio", to: root.appending("other")),
        ])
        let places = try await fixture.query("SELECT place FROM session ORDER BY position").map { try $0.text(0) }
        #expect(places == ["anywhere", "member b", "member b", "member b", "anywhere", "member b"])
    }

    @Test func `the status of a session names its member, even while the member stops the session`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let (first, second) = (try await fleet.join("a"), try await fleet.join("b"))
        let lease = try #require(try await fleet.store.take(for: first).first)
        #expect(try await fleet.fleet.status(of: ids[0]).host == "a")
        #expect(try await fleet.fleet.status(of: ids[1]).host == nil)
        try await fleet.fleet.yield(ids[0])
        let status = try await fleet.fleet.status(of: ids[0])
        #expect(status.state == .waiting && status.host == "a" && status.why == .leased(to: "a"))
        #expect(try await fleet.store.take(for: second).map(\.id) == [ids[1]])
        try await fleet.endLeases(of: first)
        _ = try await fleet.store.take(for: second)
        #expect(try await fleet.fleet.status(of: ids[0]).host == nil)
        #expect(try await !fleet.giveBack(lease))
    }

    @Test func `an account that a member can't use is skipped by this member, and blocked once no member can use it`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let (first, second) = (try await fleet.join("a", slots: 2), try await fleet.join("b"))
        let error = TransferError(.credentials, .credentialsUnavailable, "There is no token.")
        try await fleet.store.refuse("studio", error: error, by: "a")
        #expect(try await fleet.store.take(for: first).isEmpty)
        #expect(try await fleet.fleet.account("studio")?.blockingError == nil)
        let lease = try #require(try await fleet.store.take(for: second).first)
        try await fleet.store.refuse("studio", error: error, by: "b")
        _ = try await fleet.giveBack(lease, isInterrupted: true)
        #expect(try await fleet.fleet.account("studio")?.blockingError == error)
        #expect(try await fleet.fleet.members().map(\.refusedAccounts) == [["studio"], ["studio"]])
        try await fleet.fleet.unblockAccount("studio")
        #expect(try await fleet.store.take(for: first).map(\.id) == [ids[0], ids[1]])
    }

    @Test func `a new limit of an account keeps the list of members that can't use the account`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.join("a")
        try await fleet.store.refuse("studio", error: TransferError(.credentials, .credentialsUnavailable, "There is no token."), by: "a")
        try await fleet.fleet.setMaxConcurrentSessions(3, account: "studio")
        #expect(try await fleet.fleet.members().map(\.refusedAccounts) == [["studio"]])
        #expect(try await fleet.fleet.account("studio")?.account.maxConcurrentSessions == 3)
        await #expect(throws: QueueError(.noSuchAccount, "There is no account named \"x\".")) {
            try await fleet.fleet.setMaxConcurrentSessions(3, account: "x")
        }
    }

    @Test func `a stopped fleet starts nothing and gives running sessions back`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(2)
        let member = try await fleet.join("m", slots: 2)
        let taken = try await fleet.store.take(for: member, limit: 1)
        try await fleet.fleet.stop(.interrupt, deadline: nil)
        #expect(try await fleet.requests(member, taken[0]) == [.giveBack])
        #expect(try await fleet.giveBack(taken[0]))
        #expect(try await fleet.store.take(for: member).isEmpty)
        #expect(try await fleet.fleet.status(of: ids[1]).why == .queueNotRunning)
        try await fleet.fleet.start()
        #expect(try await fleet.store.take(for: member).map(\.id) == ids)
    }

    @Test func `concurrent takes never exceed a limit, and take each session once`() async throws {
        let fleet = try await FleetFixture()
        try await fleet.fleet.setMaxConcurrentSessions(7, account: nil)
        try await fleet.fleet.setMaxConcurrentSessions(5, account: "studio")
        let ids = try await fleet.add(60)
        let finished = try await withThrowingTaskGroup(of: [SessionID].self) { group in
            for number in 0..<6 {
                group.addTask {
                    let member = FleetMemberDescription(name: "m\(number)", identity: UUID().uuidString, slots: 3)
                    let store = FleetStore(try PostgresURL(fleet.url))
                    try await store.join(member)
                    var finished: [SessionID] = []
                    while try await store.connection.transaction({
                        try $0.query("SELECT count(*) FROM session WHERE state <> 'completed'")[0].integer(0)
                    }) > 0 {
                        let leases = try await store.take(for: member)
                        let owned = try await store.unlocked {
                            try $0.query("SELECT count(*) FROM session WHERE owner IS NOT NULL")[0].integer(0)
                        }
                        #expect(owned <= 5)
                        for lease in leases {
                            let isValid = try await store.locked {
                                try $0.finish(lease.reference, error: nil, statistics: SessionStatistics())
                            }
                            #expect(isValid)
                            finished.append(lease.id)
                        }
                    }
                    return finished
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(finished.count == ids.count)
        #expect(Set(finished) == Set(ids))
    }
}
