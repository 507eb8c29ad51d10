import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct StorageLocationTests {
    @Test func temporaryFolderIsDeletedAtShutdown() async throws {
        let (memory, storage) = (MemoryTransport(), Storage.temporary())
        #expect(storage.folder != Storage.temporary().folder)
        let queue = try await TransferQueue(storage: storage, transports: [memory])
        try await queue.save(Account("a", endpoints: [memory.endpoint()]))
        let session = try await queue.enqueue(.upload(items: [.data(Data([1, 2, 3]), as: RemotePath("x"))], to: "a"))
        try await queue.start()
        #expect(try await session.value.state == .completed)
        #expect(FileManager.default.fileExists(atPath: storage.folder.string))
        await queue.shutdown()
        #expect(!FileManager.default.fileExists(atPath: storage.folder.string))
    }

    @Test func folderOfApplicationEndsWithItsName() {
        let folder = Storage.application("com.example.uploader").folder
        #expect(folder.isAbsolute && folder.components.contains("com.example.uploader"))
        #expect(Storage.application("com.example.uploader").folder == folder)
    }
}
