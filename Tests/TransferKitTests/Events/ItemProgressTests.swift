import Foundation
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct ItemProgressTests {
    private struct Ticket: Codable, Equatable {
        var id: Int
    }

    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    /// Advances the clock by 100 ms, the interval between progress events, as soon as `count` tasks are sleeping for 100 ms.
    private func tick(_ count: Int = 1) async {
        await fixture.clock.waitForSleep(of: .milliseconds(100), count: count)
        fixture.clock.advance(by: .milliseconds(100))
    }

    @Test func reportsStartProgressAndEndOfEachItem() async throws {
        let queue = try await fixture.openWithAccounts()
        let events = queue.events
        let options = SessionOptions(filesInFlight: 1, reportsItemProgress: true)
        let gates = ["1", "2"].map { fixture.memory.gate($0, atByte: 4_000) }
        let session = try await queue.enqueue(try fixture.upload("1", "2", options: options))
        try await queue.start()
        for gate in gates {
            try await gate.reached()
            await tick()
            // A tick without progress reports nothing.
            await tick()
            await fixture.clock.waitForSleep(of: .milliseconds(100))
            gate.open()
        }
        _ = try await session.value
        await queue.shutdown()
        var names: [Int64: [String]] = [:]
        var shown: [Int64: ItemProgress] = [:]
        for await event in events {
            switch event.kind {
            case .itemStarted(session.id, let position): names[position, default: []].append(event.kind.name)
            case .itemCompleted(session.id, let position, _): names[position, default: []].append(event.kind.name)
            case .itemProgress(session.id, let position, let progress):
                names[position, default: []].append(event.kind.name)
                shown[position] = progress
            default: break
            }
        }
        let expected = ["itemStarted", "itemProgress", "itemCompleted"]
        #expect(names == [0: expected, 1: expected])
        #expect(shown.values.allSatisfy { $0.bytesTotal == 10_000 && $0.bytesSent >= 4_000 && $0.bytesSent >= $0.bytesDone })
    }

    @Test func reportsOnlyEndsByDefault() async throws {
        let queue = try await fixture.openWithAccounts()
        let events = queue.events
        let gate = fixture.memory.gate("1", atByte: 4_000)
        let session = try await queue.enqueue(try fixture.upload("1"))
        try await queue.start()
        try await gate.reached()
        await tick()
        gate.open()
        _ = try await session.value
        await queue.shutdown()
        let names = Set(await events.collect().map(\.kind.name))
        #expect(names.contains("itemCompleted") && names.isDisjoint(with: ["itemStarted", "itemProgress", "totalProgress"]))
    }

    /// Each run reports the start once, even if the run has several attempts.
    @Test func resumedItemReportsStartAgain() async throws {
        let queue = try await fixture.openWithAccounts()
        let events = queue.events
        let gate = fixture.memory.gate("1", atByte: 4_000)
        fixture.memory.faults.append(.cut(afterBytes: 2_000))
        let session = try await queue.enqueue(
            try fixture.upload("1", options: SessionOptions(retry: RetryPolicy(base: .zero), reportsItemProgress: true)))
        try await queue.start()
        try await gate.reached()
        try await session.pause()
        gate.open()
        try await session.resume()
        _ = try await session.value
        await queue.shutdown()
        #expect(await events.collect().count { if case .itemStarted = $0.kind { true } else { false } } == 2)
    }

    @Test func keepsLatestProgressOfEachItem() async throws {
        let hub = EventHub()
        let events = hub.subscribe()
        let id = SessionID()
        func progress(_ bytes: Int64) -> ItemProgress { ItemProgress(bytesTotal: 1_000, bytesDone: 0, bytesSent: bytes) }
        for bytes in 1...1_000 as ClosedRange<Int64> {
            for position in [0, 1] as [Int64] { hub.publishUnnumbered(.itemProgress(id, position: position, progress(bytes)), at: .now) }
            hub.publishUnnumbered(.totalProgress(QueueStatistics(bytesSent: bytes)), at: .now)
            hub.publishUnnumbered(.progress(id, SessionStatistics(bytesSent: bytes)), at: .now)
        }
        hub.finish()
        #expect(
            await events.collect().map(\.kind) == [
                .itemProgress(id, position: 0, progress(1_000)), .itemProgress(id, position: 1, progress(1_000)),
                .totalProgress(QueueStatistics(bytesSent: 1_000)), .progress(id, SessionStatistics(bytesSent: 1_000)),
            ])
    }

    @Test func reportsTotalProgressUntilAllSessionsEnd() async throws {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        configuration.clock = fixture.clock.engineClock
        configuration.totalProgressInterval = .seconds(1)
        let queue = try await TransferQueue(
            storage: .folder(fixture.folder.path.appending("store")), transports: [fixture.memory], configuration: configuration)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let totals = queue.events
        let gate = fixture.memory.gate("1", atByte: 4_000)
        let session = try await queue.enqueue(try fixture.upload("1", "2", size: 10_000))
        try await queue.start()
        try await gate.reached()
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.clock.advance(by: .seconds(1))
        var iterator = totals.makeAsyncIterator()
        func next() async -> QueueStatistics? {
            while let event = await iterator.next() {
                if case .totalProgress(let statistics) = event.kind { return statistics }
            }
            return nil
        }
        let first = try #require(await next())
        #expect(first.files == 2 && first.bytesTotal == 20_000 && first.bytesSent >= 4_000 && first.bytesSent < 20_000)
        gate.open()
        #expect(try await session.value.state == .completed)
        var last = first
        while last.filesDone < 2 {
            await fixture.clock.waitForSleep(of: .seconds(1))
            fixture.clock.advance(by: .seconds(1))
            last = try #require(await next())
        }
        #expect(last.bytesDone == 20_000)
        await queue.shutdown()
    }

    /// The files of a form are sent one after the other.
    @Test func formProgressDeterminesFileProgress() async throws {
        let queue = try await fixture.openWithAccounts()
        let events = queue.events
        let form = TransferItem.form(
            files: try [.file(fixture.folder.file("a", size: 2_500)), .file(fixture.folder.file("b", size: 1_500), field: "other")])
        var request = try SessionRequest.upload(items: [form], to: "a")
        request.options.reportsItemProgress = true
        let gate = fixture.memory.gate("a", atByte: 3_000)
        let session = try await queue.enqueue(request)
        try await queue.start()
        try await gate.reached()
        await tick()
        let item = try #require(try await queue.items(of: session.id).first)
        for await event in events {
            guard case .itemProgress(session.id, position: 0, let progress) = event.kind else { continue }
            #expect(item.formProgress(at: progress.bytesSent) == [2_500, 500])
            break
        }
        gate.open()
        _ = try await session.value
        await queue.shutdown()
    }

    @Test func contextsOfEventsAreDecodedOnRequest() async throws {
        let queue = try await fixture.openWithAccounts()
        let events = queue.events
        var request = try fixture.upload("1")
        request.context = try JSONEncoder().encode(Ticket(id: 7))
        let sessions = try await queue.enqueue([request, try fixture.upload("2")])
        let (session, other) = (sessions[0], sessions[1])
        try await queue.start()
        _ = try await other.value
        #expect(try await session.status.context(as: Ticket.self) == Ticket(id: 7))
        await #expect(throws: DecodingError.self) { try await queue.context(of: session.id, as: [Int].self) }
        #expect(try await queue.context(of: other.id, as: Ticket.self) == nil)
        #expect(try await queue.context(of: SessionID(), as: Ticket.self) == nil)
        var tickets: [String: Ticket?] = [:]
        var added: [SessionID: Ticket] = [:]
        for await event in events {
            if case .added = event.kind { added.merge(try await queue.contexts(of: event, as: Ticket.self)) { $1 } }
            if event.session == session.id { tickets[event.kind.name] = try await queue.context(of: event, as: Ticket.self) }
            if case .queueBecameIdle = event.kind { break }
        }
        #expect(
            tickets["didActivate"] == Ticket(id: 7) && tickets["itemCompleted"] == Ticket(id: 7) && tickets["completed"] == Ticket(id: 7))
        #expect(added == [session.id: Ticket(id: 7)])
        await queue.shutdown()
    }

    /// The queue removes the session as soon as the session has completed, and before this test reads the first event.
    @Test func completionEventOfRemovedSessionHasContext() async throws {
        let queue = try await fixture.open(retention: .count(0))
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let events = queue.events
        var request = try fixture.upload("1")
        request.context = try JSONEncoder().encode(Ticket(id: 1))
        let session = try await queue.enqueue(request)
        #expect(await queue.remainingSessions() == 1)
        try await queue.start()
        await queue.waitUntilIdle()
        await #expect(throws: QueueError.self) { try await session.status }
        #expect(await queue.remainingSessions() == 0)
        var tickets: [String: Ticket?] = [:]
        for await event in events {
            tickets[event.kind.name] = try await queue.context(of: event, as: Ticket.self)
            if case .removed = event.kind { break }
        }
        #expect(tickets["didStartRunning"] == Ticket(id: 1) && tickets["completed"] == Ticket(id: 1))
        #expect(tickets["added"] == .some(nil))
        await queue.shutdown()
    }
}
