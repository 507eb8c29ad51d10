import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct SpoolTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private var folder: FilePath { fixture.folder.path.appending("store").appending("spool") }

    private func spooled() throws -> [FilePath] {
        try FileManager.default.contentsOfDirectory(atPath: folder.string).map { folder.appending($0) }
    }

    private func request(_ contents: String...) throws -> SessionRequest {
        try .upload(
            items: try contents.map { .data(Data($0.utf8), as: try RemotePath("blob-\($0)")) }, to: "a")
    }

    @Test func keepsBytesPrivateUntilUploaded() async throws {
        var queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try request("one", "two"))
        let item = try #require(try await queue.items(of: session.id).first)
        #expect(try Data(contentsOf: URL(fileURLWithPath: item.source.string)) == Data("one".utf8))
        let attributes = try FileManager.default.attributesOfItem(atPath: item.source.string)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(try FileManager.default.attributesOfItem(atPath: folder.string)[.posixPermissions] as? Int == 0o700)
        await queue.shutdown()
        queue = try await fixture.open()
        #expect(try spooled().count == 2)
        try await queue.start()
        #expect(try await queue.session(session.id).value.state == .completed)
        await queue.shutdown()
        #expect(try spooled() == [])
        #expect(fixture.memory.contents(of: "blob-two") == Data("two".utf8))
    }

    @Test func uploadedDataCannotBeSentAgain() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try request("one"))
        try await queue.start()
        _ = try await session.value
        try await queue.run(session.id, again: true)
        let error = try await #require(throws: TransferError.self) { try await session.value }
        #expect(error.failureClass == .sourceLost && error.message.contains("blob-one") && !error.message.contains("spool"))
        await queue.shutdown()
    }

    @Test func deletesBytesOfRemovedSession() async throws {
        let queue = try await fixture.openWithAccounts()
        let kept = try await queue.enqueue(try request("kept"))
        let removed = try await queue.enqueue([try request("1", "2"), try request("3")])
        #expect(try spooled().count == 4)
        try await queue.apply(.remove(), to: .sessions(removed.map(\.id)))
        #expect(try spooled() == [try await queue.items(of: kept.id)[0].source])
        await queue.shutdown()
    }

    @Test func deletesBytesOfRejectedRequest() async throws {
        let queue = try await fixture.openWithAccounts()
        await #expect(throws: QueueError.self) {
            try await queue.enqueue(try .upload(items: [.data(Data("x".utf8), as: try RemotePath("x"))], to: "nobody"))
        }
        #expect(try spooled() == [])
        await queue.shutdown()
    }

    @Test func deletesOrphanedFilesOnOpen() async throws {
        var queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(
            try .upload(
                items: [
                    .data(Data("1".utf8), as: try RemotePath("1")), TransferItem(fixture.folder.path.appending("store")),
                    .data(Data("2".utf8), as: try RemotePath("2")),
                ], to: "a"))
        await queue.shutdown()
        let kept = Set(try spooled())
        try Data("orphan".utf8).write(to: URL(fileURLWithPath: folder.appending("orphan").string))
        queue = try await fixture.open()
        #expect(Set(try spooled()) == kept && kept.count == 2, "the data of an item after a folder is kept, too")
        #expect(try await queue.items(of: session.id).count == 3)
        await queue.shutdown()
    }

    @Test func rejectsDataIfSpoolIsUnwritable() async throws {
        let queue = try await fixture.openWithAccounts()
        try Data().write(to: URL(fileURLWithPath: folder.string))
        let error = try await #require(throws: QueueError.self) { try await queue.enqueue(try request("1")) }
        #expect(error.code == .storageUnavailable && error.message.contains(folder.string))
        #expect(await queue.status().sessions == 0)
        await queue.shutdown()
    }
}
