import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

/// The queue rejects impossible sessions when they are enqueued, not when they run.
@Suite struct SessionRequirementsTests {
    private let fixture: QueueFixture
    private let transport: PickyTransport

    init() throws {
        fixture = try QueueFixture()
        transport = PickyTransport(memory: fixture.memory)
    }

    private func open(_ hosts: String...) async throws -> TransferQueue {
        let queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: hosts.map(endpoint)))
        return queue
    }

    private func endpoint(_ host: String) -> Endpoint {
        host == "absent" ? Endpoint(transport: "absent", address: "absent://host/") : fixture.memory.endpoint(host: host)
    }

    /// Options that ``PickyTransport`` rejects for some hosts.
    private static let withColor = SessionOptions(metadata: ["color": "1"])

    @Test(
        arguments: [
            (["wrong"], "wrong"), (["wrong", "able"], "wrong"), (["able", "wrong"], "wrong"), (["unable", "wrong"], "wrong"),
            (["unable"], "unable"), (["unable", "unable2"], "unable"), (["unable", "able"], nil), (["able", "unable"], nil),
            (["unable", "absent"], nil),
        ] as [([String], String?)])
    func rejectsInvalidOrUnsupportedSession(hosts: [String], rejectingHost: String?) async throws {
        let queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: hosts.map(endpoint)))
        let request = try fixture.upload("1", options: Self.withColor)
        if let rejectingHost {
            let error = try await #require(throws: QueueError.self) { try await queue.enqueue(request) }
            #expect(error.code == .invalidRequest && error.message == "\(rejectingHost) does not support the metadata key color.")
            #expect(await queue.status().sessions == 0)
        } else {
            try await queue.enqueue(request)
        }
        try await queue.enqueue(fixture.upload("1"))
        await queue.shutdown()
    }

    @Test func storesNothingIfOneSessionIsRejected() async throws {
        let queue = try await open("wrong")
        var blob = try SessionRequest.upload(items: [.data(Data("x".utf8), as: RemotePath("blob"))], to: "a")
        blob.options = Self.withColor
        let requests = [try fixture.upload("1"), try fixture.upload("2"), blob]
        await #expect(throws: QueueError.self) { try await queue.enqueue(requests, at: 0, held: true) }
        await #expect(throws: QueueError.self) { try await queue.enqueue(requests, at: 0, expecting: nil) }
        #expect(await queue.status().sessions == 0)
        let spool = fixture.folder.path.appending("store").appending("spool").string
        #expect(((try? FileManager.default.contentsOfDirectory(atPath: spool)) ?? []) == [])
        await queue.shutdown()
    }

    /// A request for an existing session is accepted, even if no endpoint of the account can perform the session any more.
    @Test func acceptsExistingSession() async throws {
        let queue = try await open("able")
        func request(_ key: String) throws -> SessionRequest {
            var request = try SessionRequest.upload(
                items: [.data(Data("x".utf8), as: RemotePath("blob"))], to: "a", options: Self.withColor)
            request.deduplicationKey = key
            return request
        }
        let known = try await queue.enqueue(request("known")).id
        try await queue.save(Account("a", endpoints: [endpoint("wrong")]))
        #expect(try await queue.enqueue(request("known")).id == known)
        let plain = try fixture.upload("1")
        #expect(try await queue.enqueue([request("known"), plain, request("known")]).map(\.id) == [known, plain.id, known])
        for requests in [[try request("new")], [try request("known"), try request("new")], [try request("new"), try request("known")]] {
            let error = try await #require(throws: QueueError.self) { try await queue.enqueue(requests) }
            #expect(error.code == .invalidRequest && error.message == "wrong does not support the metadata key color.")
        }
        #expect(await queue.sessionIDs() == [known, plain.id])
        let spool = fixture.folder.path.appending("store").appending("spool").string
        #expect(try FileManager.default.contentsOfDirectory(atPath: spool).count == 1, "only the data of the existing session")
        try await queue.remove(known)
        await #expect(throws: QueueError.self) { try await queue.enqueue(request("known")) }
        await queue.shutdown()
    }

    @Test func rejectsUnsupportedUploadURL() async throws {
        let queue = try await open("able")
        var item = TransferItem(try fixture.folder.file("1", size: 10))
        item.uploadURL = "ftp://host/capability-4711"
        let error = try await #require(throws: QueueError.self) { try await queue.enqueue(.upload(items: [item], to: "a")) }
        #expect(error.code == .invalidRequest && error.message.contains("ftp") && !error.message.contains("4711"))
        let session = try await queue.enqueue(fixture.upload("2"))
        await #expect(throws: QueueError.self) { try await queue.addItems([item], to: .id(session.id)) }
        #expect(try await queue.items(of: session.id).count == 1)
        item.uploadURL = "memory://host/file"
        try await queue.addItems([item], to: .id(session.id))
        #expect(try await queue.items(of: session.id).count == 2)
        await queue.shutdown()
    }

    @Test func rejectsUnsupportedVerificationInUpdate() async throws {
        let queue = try await open("able")
        var requests = [try fixture.upload("1"), try fixture.upload("2")]
        requests[0].tags = ["t"]
        let ids = try await queue.enqueue(requests).map(\.id)
        let update = SessionUpdate(tags: ["new"], verification: .checksum)
        let error = try await #require(throws: QueueError.self) { try await queue.update(ids[0], update) }
        #expect(error.code == .invalidRequest && error.message.contains("checksums"))
        for group in [SessionGroup.all, .account("a"), .tag("t"), .sessions(ids)] {
            await #expect(throws: QueueError.self) { try await queue.apply(.update(update), to: group) }
        }
        #expect(try await queue.sessions().map(\.tags) == [["t"], []])
        try await queue.apply(.update(SessionUpdate(tags: ["new"], verification: Verification.none)), to: .all)
        #expect(try await queue.sessions().map(\.tags) == [["new"], ["new"]])
        await queue.shutdown()
    }
}

private struct PickyTransport: SessionValidating {
    let memory: MemoryTransport

    var id: TransportID { memory.id }

    func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        if let url = options.uploadURL, url.hasPrefix("ftp:") {
            throw TransferError(.permanent, .invalidEndpoint, "A file can't be sent to an ftp URL; leave the URL out.")
        }
        guard options.verification != .checksum else {
            throw TransferError(.unsupported, .unsupported, "The server has no checksums; use another verification.")
        }
        guard options.metadata["color"] != nil else { return }
        let host = try endpoint.validate().host() ?? ""
        let failureClass: FailureClass? = host.hasPrefix("unable") ? .unsupported : host == "wrong" ? .permanent : nil
        if let failureClass { throw TransferError(failureClass, .rejected, "\(host) does not support the metadata key color.") }
    }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try await memory.perform(attempt, reporting: reporter)
    }

    func shutdown() async { await memory.shutdown() }
}
