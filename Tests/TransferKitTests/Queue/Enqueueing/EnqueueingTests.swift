import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct EnqueueingTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    @Test func reportsUnreadableItemsAndEnqueuesNothing() async throws {
        let queue = try await fixture.openWithAccounts()
        let missing = fixture.folder.path.appending("missing")
        let request = try SessionRequest.upload([fixture.folder.file("1", size: 1), missing, "/dev/null"], to: "a")
        let error = try await #require(throws: QueueError.self) { try await queue.enqueue([try fixture.upload("2"), request]) }
        #expect(error.code == .unreadableItems)
        #expect(error.message.contains("\(missing) does not exist"))
        #expect(error.message.contains("/dev/null is a device. Only regular files and folders"))
        #expect(await queue.status().sessions == 0)
        await queue.shutdown()
    }

    @Test func rejectsInvalidRequests() async throws {
        let queue = try await fixture.openWithAccounts()
        #expect(
            try await #require(throws: QueueError.self) { try await queue.enqueue(try .upload([] as [FilePath], to: "a")) }.code
                == .invalidRequest)
        let error = try await #require(throws: QueueError.self) {
            try await queue.enqueue([try fixture.upload("1"), try fixture.upload("2", to: "nobody")])
        }
        #expect(error.code == .noSuchAccount && error.message.contains("nobody"))
        #expect(await queue.status().sessions == 0)
        await queue.shutdown()
    }

    @Test func storesAllPropertiesOfRequest() async throws {
        var queue = try await fixture.openWithAccounts()
        let file = try fixture.folder.file("1", size: 5)
        let options = SessionOptions(
            metadata: ["k": "v"], onItemFailure: .failSession, retry: RetryPolicy(base: .seconds(9), maximumAttempts: 2),
            stallTimeout: .seconds(5), responseTimeout: .seconds(6))
        let request = try SessionRequest.upload(
            items: [TransferItem(file, as: try RemotePath("dir/other"))], to: "b", name: "named", tags: ["x", "y"],
            context: ["ticket": 7], options: options)
        let id = try await queue.enqueue(request).id
        await queue.shutdown()
        queue = try await fixture.open()
        let status = try await queue.status(of: id)
        #expect(status.name == "named" && status.tags == ["x", "y"] && status.account == "b" && status.index == 0)
        #expect(status.context == Data(#"{"ticket":7}"#.utf8))
        let items = try await queue.items(of: id)
        #expect(items.map(\.source) == [file] && items.map(\.destination.description) == ["dir/other"])
        #expect(items.map(\.bytesTotal) == [5])
        await queue.shutdown()
    }

    @Test func keepsFileNamesThatAreNotUTF8() async throws {
        let queue = try await fixture.openWithAccounts()
        let name: [UInt8] = [0x61, 0xFF, 0x0A, 0x62]
        let path = fixture.folder.path.appending(FilePath(bytes: name).components)
        try FileDescriptor.open(path, .writeOnly, options: [.create], permissions: [.ownerReadWrite]).close()
        let session = try await queue.enqueue(try .upload([path], to: "a"))
        let items = try await queue.items(of: session.id)
        #expect(items.map(\.source) == [path])
        #expect(items.map(\.destination.bytes) == [name])
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(fixture.memory.completePaths.map(\.bytes) == [name])
        await queue.shutdown()
    }

    @Test func keepsSessionsOfConcurrentCallers() async throws {
        var queue = try await fixture.openWithAccounts()
        let file = try fixture.folder.file("1", size: 1)
        let ids = try await withThrowingTaskGroup(of: SessionID.self) { [queue] group in
            for _ in 0..<100 { group.addTask { try await queue.enqueue(try .upload([file], to: "a")).id } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(ids.count == 100)
        let order = await queue.sessionIDs()
        #expect(Set(order) == ids)
        await queue.shutdown()
        queue = try await fixture.open()
        #expect(await queue.sessionIDs() == order)
        await queue.shutdown()
    }
}
