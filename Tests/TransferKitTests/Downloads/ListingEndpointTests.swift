import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct ListingEndpointTests {
    private let fixture: DownloadFixture
    private var memory: MemoryTransport { fixture.memory }
    private var listings: [String] { memory.listings.map(\.description) }

    init() throws {
        fixture = try DownloadFixture()
    }

    private struct FilesOnly: Transport {
        let id: TransportID
        let smallFilesInFlight = 64
        let memory: MemoryTransport

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            try await memory.perform(attempt, reporting: reporter)
        }

        func shutdown() async {}
    }

    private struct PartialLister: FolderListing {
        let memory: MemoryTransport
        let requests = Locked<[String]>([])
        var id: TransportID { memory.id }

        func validateListing(at endpoint: Endpoint) throws(TransferError) {
            guard endpoint.address.contains("folders") else {
                throw TransferError(.unsupported, .unsupported, "This server has only files. Add the setting folders.")
            }
        }

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            requests.withLock { $0.append(attempt.endpoint.address) }
            return try await memory.perform(attempt, reporting: reporter)
        }

        func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
            requests.withLock { $0.append("\(attempt.endpoint.address) \(attempt.origin.account)") }
            try await memory.list(attempt, receive: receive)
        }

        func shutdown() async {}
    }

    private func request(_ path: String, options: SessionOptions = SessionOptions()) throws -> SessionRequest {
        try .download(items: [.remoteFolder(try RemotePath(path))], from: "a", to: fixture.target, options: options)
    }

    private func provide(_ count: Int, in folder: String) {
        for number in 0..<count { memory.provide(DownloadFixture.content(10, seed: number), as: "\(folder)/\(number)") }
    }

    @Test func transportWithoutListingFailsItem() async throws {
        provide(3, in: "trip")
        let queue = try await fixture.queue.open(transports: [FilesOnly(id: "memory", memory: memory)])
        try await queue.save(Account("a", endpoints: [memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(request("trip"))
        try await queue.start()
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.failureClass == .unsupported)
        #expect(
            error?.message == "The transport \"memory\" can't list folders, so it can't download trip. Add the files in it one by one.")
        #expect(memory.attempts.isEmpty && listings.isEmpty)
        #expect(try fixture.names() == [])
        await queue.shutdown()
    }

    @Test func skipsEndpointThatCannotListFolders() async throws {
        provide(2, in: "trip")
        let lister = PartialLister(memory: memory)
        let (files, folders) = (memory.endpoint(host: "files"), memory.endpoint(host: "folders"))
        let queue = try await fixture.queue.open(transports: [lister])
        try await queue.save(Account("a", endpoints: [files, folders]))
        try await queue.save(Account("b", endpoints: [files]))
        try await queue.start()
        _ = try await queue.enqueue(request("trip")).value
        #expect(lister.requests.withLock { $0 } == ["\(folders.address) a", folders.address, folders.address])
        let session = try await queue.enqueue(.download(items: [.remoteFolder("trip")], from: "b", to: fixture.target))
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.message == "This server has only files. Add the setting folders.")
        #expect(lister.requests.withLock { $0.count } == 3)
        await queue.shutdown()
    }

    /// At another endpoint, the same name may refer to a different file.
    @Test func downloadsFromListingEndpoint() async throws {
        provide(20, in: "trip")
        let gates = (0..<20).map { memory.gate("trip/\($0)") }
        let other = MemoryTransport(id: "files")
        let queue = try await fixture.queue.open(transports: [FilesOnly(id: "files", memory: other), memory])
        try await queue.save(
            Account("a", endpoints: [Endpoint(transport: "files", address: "memory://first/"), memory.endpoint(host: "second")]))
        let session = try await queue.enqueue(request("trip"))
        try await queue.start()
        // The limit of the endpoint that listed the folder applies (6, the default), not the limit of `FilesOnly` (64).
        try await memory.attemptsStarted(6)
        gates.forEach { $0.open() }
        #expect(try await session.value.statistics.filesDone == 20)
        #expect(other.attempts.isEmpty && memory.attempts.count == 20 && memory.peakRunningCount <= 6)
        await queue.shutdown()
    }

    @Test func doesNotFallBackToEndpointWithoutListing() async throws {
        provide(3, in: "trip")
        memory.refuse(host: "down")
        let queue = try await fixture.queue.open(transports: [memory, FilesOnly(id: "files", memory: MemoryTransport(id: "files"))])
        try await queue.save(
            Account("a", endpoints: [memory.endpoint(host: "down"), Endpoint(transport: "files", address: "memory://second/")]))
        let session = try await queue.enqueue(request("trip"))
        let events = queue.events
        try await queue.start()
        let error = await events.first { kind -> TransferError? in
            switch kind {
            case .attemptFailed(_, let error, let retryAt) where retryAt > Date(timeIntervalSince1970: 1_000_000): error
            case .failed(_, let error): error
            default: nil
            }
        }
        try #require(error?.code == .connectionRefused)
        await fixture.queue.clock.waitForSleep(of: .seconds(1))
        memory.accept(host: "down")
        fixture.queue.clock.advance(by: .seconds(1))
        #expect(try await session.value.statistics.filesDone == 3)
        await queue.shutdown()
    }

    @Test func waitsForOnlyListingEndpoint() async throws {
        provide(3, in: "second")
        let busy = Locked(true)
        let lister = ScriptedLister(memory: memory) { path, number in
            if busy.withLock({ $0 }) { throw TransferError(.transient, .serverError, "Busy.", retryAfter: .seconds(60)) }
            return number > 0 ? nil : (0..<3).map { RemoteEntry(name: Array("\($0)".utf8), kind: .file(size: 10)) }
        }
        let queue = try await fixture.queue.open(transports: [lister, FilesOnly(id: "files", memory: MemoryTransport(id: "files"))])
        try await queue.save(
            Account("a", endpoints: [memory.endpoint(host: "busy"), Endpoint(transport: "files", address: "memory://files/")]))
        try await queue.enqueue(request("first"), held: false)
        let second = try await queue.enqueue(request("second"))
        let events = queue.events
        try await queue.start()
        while try await second.status.error == nil { await Task.yield() }
        await fixture.queue.clock.waitForSleep(of: .seconds(60))
        // During this time, a queue that did not wait would activate the session again.
        for _ in 0..<50 { _ = await queue.status() }
        #expect(try await second.status.why == .retry(at: Date(timeIntervalSince1970: 1_000_060)))
        busy.withLock { $0 = false }
        try await queue.cancel(.at(0), discarding: true)
        fixture.queue.clock.advance(by: .seconds(60))
        #expect(try await second.value.statistics.filesDone == 3)
        await queue.shutdown()
        var activations = 0
        for await event in events where event.kind == .willActivate(second.id) { activations += 1 }
        #expect(activations == 2)
    }

    @Test func fallsBackDuringListing() async throws {
        let second = MemoryTransport(id: "second")
        memory.refuse(host: "a")
        for name in ["trip/1", "trip/in/2", "trip/in/3", "trip/z/4"] { second.provide(DownloadFixture.content(10), as: name) }
        let first = ScriptedLister(memory: memory) { path, number in
            switch (path.description, number) {
            case ("trip", 0):
                return [RemoteEntry(name: Array("1".utf8), kind: .file(size: 10))]
                    + ["in", "z"].map { RemoteEntry(name: Array($0.utf8), kind: .folder) }
            case ("trip/in", 0):
                return ["2", "ghost"].map { RemoteEntry(name: Array($0.utf8), kind: .file(size: 10)) }
                    + [RemoteEntry(name: Array("ghosts".utf8), kind: .folder)]
            case ("trip/in", 1...17):
                // Lists more entries than the queue holds in memory, so the queue must store some of them.
                return (0..<1_000).map { RemoteEntry(name: Array("link \(number) \($0)".utf8), kind: .symbolicLink) }
            case ("trip/in", _): throw TransferError(.unreachable, .connectionLost, "The host went down.")
            default: return nil
            }
        }
        let queue = try await fixture.queue.open(transports: [first, second])
        try await queue.save(Account("a", endpoints: [memory.endpoint(host: "a"), second.endpoint(host: "b")]))
        let session = try await queue.enqueue(request("trip"))
        try await queue.start()
        let status = try await session.value
        #expect(status.statistics.files == 4 && status.statistics.filesDone == 4 && status.statistics.filesFailed == 0)
        #expect(second.listings.map(\.description) == ["trip/in", "trip/z"])
        let items = try await queue.items(of: session.id)
        #expect(items.map(\.destination.description) == ["trip/1", "trip/in/2", "trip/in/3", "trip/z/4"])
        await queue.waitUntilIdle()
        #expect(try fixture.names() == ["trip", "trip/1", "trip/in", "trip/in/2", "trip/in/3", "trip/z", "trip/z/4"])
        await queue.shutdown()
    }
}
