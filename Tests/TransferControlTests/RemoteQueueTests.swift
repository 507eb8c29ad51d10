import Foundation
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransportTesting

/// Verifies that a remote queue behaves like a queue in this process.
@Suite struct RemoteQueueTests {
    @Test func returnsSameValuesAsQueue() async throws {
        try await ControlFixture.with { fixture in
            let (queue, remote) = (fixture.queue, fixture.remote)
            var request = try fixture.upload("a", "b")
            request.tags = ["x"]
            request.context = Data(#"{"n":1}"#.utf8)
            request.notBefore = Date(timeIntervalSinceNow: 3_600)
            request.options.metadata = ["k": "v"]
            let id = try await remote.enqueue(request)
            #expect(id == request.id)
            try await remote.start()
            try await remote.setMaxConcurrentSessions(3)
            try await remote.setRateLimit(1 << 20, account: "a")
            let session = try await remote.status(of: id)
            #expect(try await session == queue.status(of: id))
            #expect(session.tags == ["x"] && session.context == request.context)
            guard case .notBefore? = session.why else { Issue.record("\(String(describing: session.why))"); return }
            var (status, localStatus) = (try await remote.status(), await queue.status())
            // Each call computes `nextDue` from the current time.
            #expect(status.nextDue != nil)
            (status.nextDue, localStatus.nextDue) = (nil, nil)
            #expect(status == localStatus && status.maxConcurrentSessions == 3)
            #expect(try await remote.statistics() == queue.statistics())
            let (remaining, localRemaining) = (try await remote.remainingSessions(), await queue.remainingSessions())
            #expect(remaining == 1 && localRemaining == 1)
            let (accounts, localAccounts) = (try await remote.accounts(), await queue.accounts())
            #expect(accounts == localAccounts && accounts.first?.account.rateLimit == 1 << 20)
            #expect(try await remote.account("nobody") == nil)
            #expect(try await remote.items(of: id) == queue.items(of: id))
            #expect(try await remote.sessions() == queue.sessions())
            #expect(try await remote.forecast().map(\.id) == [id])
            #expect(try await remote.storeHealth() == queue.storeHealth())
            let ids = await queue.sessionIDs()
            #expect(try await remote.sessionIDs() == ids)
            #expect(try await remote.sessionIDs(beginningWith: String(id.description.prefix(6)).uppercased(), limit: 5) == [id])
            #expect(try await remote.owner().processID == ProcessInfo.processInfo.processIdentifier)
        }
    }

    /// A form arrives unchanged, even if its data is too large for one message.
    @Test(arguments: [5, 1 << 20]) func sendsForms(size: Int) async throws {
        try await ControlFixture.with { fixture in
            let remote = fixture.remote
            let data = Data((0..<size).map { UInt8(truncatingIfNeeded: $0) })
            let form = TransferItem.form(
                [
                    .text("Day one", field: "title"), .data(data, name: "first", mediaType: "image/png"),
                    .file(try fixture.file("a"), field: "f"),
                    .data(Data("second".utf8), field: "é\n", name: "s\"2"),
                ], as: "form")
            let id = try await remote.enqueue(
                .upload(items: [form, TransferItem(try fixture.file("b"))], to: "a", options: SessionOptions(filesInFlight: 1)))
            let items = try await remote.items(of: id)
            #expect(try await items == fixture.queue.items(of: id))
            #expect(items.first?.formFiles.map(\.name) == ["first", "a", "s\"2"])
            try await remote.addItems([.form(files: [.data(data, name: "added")])], to: .id(id))
            try await remote.start()
            #expect(try await remote.value(of: id).state == .completed)
            let forms = fixture.memory.forms
            #expect(forms.map(\.path.description) == ["form", "added"])
            #expect(forms.first?.parts.map(\.field) == ["title", "file", "f", "é\n"])
            #expect(forms.first?.parts.map(\.mediaType) == [nil, "image/png", nil, nil])
            let contents = forms.first?.parts.map(\.content)
            #expect(contents == [Data("Day one".utf8), data, Data(repeating: 7, count: 1_000), Data("second".utf8)])
            #expect(forms.last?.parts.map(\.content) == [data])
        }
    }

    @Test func performsOrRejectsOperations() async throws {
        try await ControlFixture.with { fixture in
            let (queue, remote) = (fixture.queue, fixture.remote)
            let ids = try await remote.add([fixture.upload("a"), fixture.upload("b"), fixture.upload("c")])
            try await remote.move(ids[2], to: .front)
            #expect(await queue.sessionIDs() == [ids[2], ids[0], ids[1]])
            try await remote.hold(ids[0])
            #expect(try await remote.pause(ids[1]) == .held)
            #expect(try await remote.apply(.release, to: .all) == [ids[0], ids[1]])
            #expect(try await remote.apply(.cancel(), to: .sessions([ids[0], ids[1]])) == [ids[0], ids[1]])
            try await remote.update(ids[2], SessionUpdate(tags: ["t"]))
            #expect(try await queue.status(of: ids[2]).tags == ["t"])
            let (cancelled, tagged) = (SessionGroup.state(.cancelled), SessionGroup.tag("t"))
            for (group, members) in [(cancelled, [ids[0], ids[1]]), (tagged, [ids[2]]), (.sessions([ids[1], ids[0]]), [ids[0], ids[1]])] {
                #expect(try await remote.sessions(in: group).map(\.id) == members)
                #expect(try await remote.sessions(in: group) == queue.sessions(in: group))
            }
            #expect(try await remote.sessions(in: .failed).isEmpty)
            await #expect { try await remote.sessions(in: .account("none")) } throws: { ($0 as? QueueError)?.code == .noSuchAccount }
            #expect(try await remote.apply(.remove(), to: .tag("t")) == [ids[2]])
            await #expect { try await remote.status(of: ids[2]) } throws: { ($0 as? QueueError)?.code == .noSuchSession }
            await #expect { try await remote.resume(ids[0]) } throws: { ($0 as? QueueError)?.code == .invalidTransition }
            await #expect { try await remote.deleteAccount("a") } throws: { ($0 as? QueueError)?.code == .accountInUse }
            await #expect { try await remote.stopAgent() } throws: { ($0 as? QueueError)?.code == .invalidTransition }
        }
    }

    /// The server asks clients to wait for an hour. `retryEndpoints` ends the wait early.
    @Test func retriesUnavailableEndpoint() async throws {
        try await ControlFixture.with { fixture in
            let (queue, remote) = (fixture.queue, fixture.remote)
            fixture.memory.failNext(with: TransferError(.transient, .serverError, "The server is busy.", retryAfter: .seconds(3_600)))
            let id = try await remote.enqueue(fixture.upload("a"))
            try await remote.start()
            await queue.waitUntilIdle(scheduled: false)
            let before = try await remote.status(of: id)
            guard case .retry? = before.why else { Issue.record("\(String(describing: before.why))"); return }
            // The gate keeps the session running, so that the test can check its state.
            let gate = fixture.memory.gate("a")
            try await remote.retryEndpoints(of: "a")
            let after = try await remote.status(of: id)
            try #require(after.state == .running)
            gate.open()
            #expect(try await remote.value(of: id).state == .completed)
            await #expect { try await remote.retryEndpoints(of: "nobody") } throws: { ($0 as? QueueError)?.code == .noSuchAccount }
        }
    }

    @Test func returnsDuplicates() async throws {
        try await ControlFixture.with { fixture in
            let (queue, remote) = (fixture.queue, fixture.remote)
            var request = try fixture.upload("a")
            request.deduplicationKey = "key"
            let id = try await remote.enqueue(request)
            request.id = SessionID()
            #expect(try await remote.enqueue(request) == id)
            try await queue.start()
            #expect(try await queue.session(id).value.state == .completed)
            request.deduplicatesCompleted = true
            #expect(try await remote.enqueue(request) == id)
            request.deduplicatesCompleted = false
            #expect(try await remote.enqueue(request) == request.id)
        }
    }

    @Test func validatesSessionsWithTransportsOfOwner() async throws {
        try await ControlFixture.with(transport: ChecksumlessTransport()) { fixture in
            let (queue, remote) = (fixture.queue, fixture.remote)
            var request = try fixture.upload("a")
            request.options.verification = .checksum
            for requests in [[request], [try fixture.upload("b"), request]] {
                let error = try await #require(throws: QueueError.self) { try await remote.add(requests) }
                #expect(error.code == .invalidRequest && error.message == "There are no checksums here.")
            }
            let id = try await remote.enqueue(fixture.upload("b"))
            let error = try await #require(throws: QueueError.self) {
                try await remote.update(id, SessionUpdate(verification: .checksum))
            }
            #expect(error.code == .invalidRequest)
            #expect(await queue.status().sessions == 1)
        }
    }

    /// Requests and responses with many items or IDs, or with much in-memory data, may exceed the maximum size of a message.
    @Test func sendsRequestsOfAnySize() async throws {
        try await ControlFixture.with { fixture in
            let (queue, remote) = (fixture.queue, fixture.remote)
            let file = try fixture.file("file")
            let many = try (0..<12_000).map { TransferItem(file, as: try RemotePath("folder/with/a/name/\($0)")) }
            let bytes = Data(repeating: 1, count: 600_000) + Data(repeating: 2, count: 700_000)
            let (first, second) = (
                try SessionRequest.upload(items: many, to: "a"),
                try SessionRequest.upload(
                    items: [.data(bytes, as: try RemotePath("bytes")), .data(Data(), as: try RemotePath("none"))], to: "a")
            )
            try await remote.add([first, second])
            #expect(try await remote.items(of: first.id, limit: 10_000) == queue.items(of: first.id, limit: 10_000))
            #expect(try await queue.status(of: first.id).statistics.files == 12_000)
            try await remote.addItems([TransferItem(file, as: try RemotePath("one-more"))], to: .id(first.id))
            #expect(try await queue.status(of: first.id).statistics.files == 12_001)
            let small = try (0..<1_200).map { try SessionRequest.upload(items: [TransferItem(file, as: RemotePath("\($0)"))], to: "a") }
            let ids = try await remote.add(small, held: true)
            #expect(ids == small.map(\.id))
            #expect(try await remote.sessions().map(\.id) == [first.id, second.id] + ids)
            #expect(try await remote.apply(.remove(), to: .sessions([first.id] + ids)) == [first.id] + ids)
            try await remote.start()
            try await #expect(remote.value(of: second.id).state == .completed)
            #expect(fixture.memory.contents(of: "bytes") == bytes)
        }
    }

    @Test func forEachSessionReadsInOrderUntilStopped() async throws {
        try await ControlFixture.with { fixture in
            let request = try fixture.upload("a")
            let requests = (0..<4_200).map { _ in
                var copy = request
                copy.id = SessionID()
                return copy
            }
            let ids = try await fixture.queue.add(requests, held: true)
            let queues: [any ControllableQueue] = [fixture.queue, fixture.remote]
            for queue in queues {
                var read: [SessionID] = []
                try await queue.forEachSession { session in
                    read.append(session.id)
                    return true
                }
                #expect(read == ids)
                read = []
                try await queue.forEachSession { session in
                    read.append(session.id)
                    return read.count < 2_100
                }
                #expect(read == Array(ids.prefix(2_100)))
            }
        }
    }

    /// The URLs of one session's items together exceed the maximum size of a message.
    @Test func sendsItemsWithLongURLs() async throws {
        try await ControlFixture.with { fixture in
            let url = "https://example.com/files?signature=" + String(repeating: "a", count: 3_900)
            let items = try (0..<3_000).map {
                var item = TransferItem.data(Data("x".utf8), as: try RemotePath("\($0)"))
                item.creationURL = url
                return item
            }
            let request = try SessionRequest.upload(items: items, to: "a")
            #expect(try await fixture.remote.add([request], held: true) == [request.id])
            #expect(try await fixture.queue.status(of: request.id).statistics.files == 3_000)
        }
    }

    /// The client sends small sessions together in one message, and splits large sessions into several messages.
    @Test func addsSessionsOfAnySize() async throws {
        try await ControlFixture.with { fixture in
            let large = try SessionRequest.upload([try fixture.file("large")], to: "a", tags: ["large"])
            var described = large
            described.options.metadata = ["note": String(repeating: "\u{1}", count: 200_000)]
            var many = try SessionRequest.upload((0..<150).map { _ in fixture.folder.appending("large") }, to: "a")
            many.name = "many"
            var requests: [SessionRequest] = []
            for number in 0..<120 {
                var request = number % 12 == 0 ? described : number % 30 == 1 ? many : large
                request.id = SessionID()
                requests.append(request)
            }
            #expect(try await fixture.remote.add(requests, at: nil, held: true) == requests.map(\.id))
            var read: [(SessionID, Int)] = []
            try await fixture.queue.forEachSession { session in
                read.append((session.id, Int(session.statistics.files)))
                return true
            }
            #expect(read.map(\.0) == requests.map(\.id))
            #expect(read.map(\.1) == requests.map(\.items.count))
        }
    }

    @Test func mergesConcurrentEdits() async throws {
        try await ControlFixture.with { fixture in
            let queues: [any ControllableQueue] = [fixture.queue, fixture.remote]
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        let queue = queues[number % 2]
                        var (known, edited): (Account, Account)
                        repeat {
                            known = try #require(await queue.account("a")).account
                            edited = known
                            edited.endpoints[0].settings["\(number)"] = "1"
                        } while try await !queue.save(edited, replacing: known)
                    }
                }
                try await group.waitForAll()
            }
            let account = try #require(await fixture.queue.account("a")).account
            #expect(Set((0..<20).map(String.init)).isSubset(of: account.endpoints[0].settings.keys))
            #expect(try await !fixture.remote.save(account, replacing: nil))
            let other = Account("b", endpoints: account.endpoints)
            #expect(try await !fixture.remote.save(other, replacing: account))
            #expect(try await fixture.remote.save(other, replacing: nil))
        }
    }

    @Test func rejectsStreams() async throws {
        try await ControlFixture.with { fixture in
            let (item, writer) = TransferItem.stream(as: try RemotePath("stream"))
            let error = await #expect(throws: QueueError.self) {
                try await fixture.remote.enqueue(.upload(items: [item], to: "a"))
            }
            #expect(error?.code == .invalidRequest && error?.message.contains("stream") == true)
            writer.finish()
        }
    }

    @Test(arguments: [Int.max - 1..<Int.max, -5..<1, Int.min..<Int.max, 1..<1])
    func listsSessionsInAnyRange(range: Range<Int>) async throws {
        try await ControlFixture.with { fixture in
            try await fixture.queue.add([.upload([fixture.file("one")], to: "a")], at: nil, held: true)
            #expect(try await fixture.remote.sessions(range).map(\.id) == fixture.queue.sessions(range).map(\.id))
        }
    }

    @Test func reportsMissingOwner() async throws {
        let remote = RemoteTransferQueue(folder: FilePath(NSTemporaryDirectory()).appending(UUID().uuidString))
        await #expect { try await remote.status() } throws: { ($0 as? QueueError)?.code == .ownerUnreachable }
    }

    @Test func savesAndEnqueuesDrafts() async throws {
        try await ControlFixture.with { fixture in
            let remote = fixture.remote
            let request = try SessionRequest.upload([fixture.file("one")], to: "a")
            let draft = try await remote.save(draft: request)
            #expect(draft == request.id)
            #expect(try await remote.sessions().isEmpty)
            let shown = try await remote.sessions(in: .state(.draft))
            #expect(shown.map(\.id) == [draft] && shown[0].index == -1)
            try await remote.update(draft, SessionUpdate(name: "changed", notBefore: .set(.distantFuture), overwrite: .always))
            try await remote.replaceItems(
                .all, with: [TransferItem(fixture.file("two")), TransferItem(fixture.file("three"))], in: .id(draft))
            try await remote.replaceItems(.at([1]), with: [], in: .id(draft))
            #expect(try await remote.items(of: draft).map { "\($0.destination)" } == ["two"])
            try await remote.enqueue(draft: draft, to: .front, held: true)
            let status = try await remote.status(of: draft)
            #expect(status.state == .held && status.name == "changed" && status.index == 0)
            let error = await #expect(throws: QueueError.self) { try await remote.enqueue(draft: draft) }
            #expect(error?.code == .invalidTransition)
        }
    }

    /// Relative paths are resolved against the queue's base folder, or, if the queue has none, against the client's working directory.
    @Test(arguments: [true, false]) func resolvesRelativePaths(hasBase: Bool) async throws {
        let fixture = try await ControlFixture(hasBase: hasBase)
        let path = try fixture.file("relative-4711")
        let base = hasBase ? fixture.folder : FilePath.workingFolder
        try await expectPaths(below: base, in: fixture.remote)
        try await expectPaths(below: base, in: fixture.queue)
        if hasBase {
            let id = try await fixture.remote.enqueue(.upload(["relative-4711"], to: "a"))
            #expect(try await fixture.queue.items(of: id).map(\.source) == [path])
        }
        await fixture.server.shutDownQueue()
    }

    /// Enqueues requests with relative paths that do not exist, and expects errors that contain the absolute paths.
    private func expectPaths(below base: FilePath, in queue: some ControllableQueue) async throws {
        let requests = [
            try SessionRequest.upload(["missing-4711"], to: "a"), try SessionRequest.download(["x"], from: "a", to: "missing-4711"),
        ]
        for request in requests {
            let error = try await #require(throws: QueueError.self) { try await queue.add([request], at: nil, held: false) }
            #expect(error.message.contains(base.appending("missing-4711").string), "\(error.message)")
        }
    }
}

private struct ChecksumlessTransport: SessionValidating {
    let id: TransportID = "memory"

    func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        guard options.verification == .checksum else { return }
        throw TransferError(.unsupported, .unsupported, "There are no checksums here.")
    }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        throw TransferError(.unsupported, .unsupported, "Nothing is sent.")
    }

    func shutdown() async {}
}
