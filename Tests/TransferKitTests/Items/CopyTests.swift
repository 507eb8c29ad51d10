import Foundation
import Locking
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite struct CopyTests {
    private let fixture: QueueFixture

    init() throws {
        fixture = try QueueFixture()
    }

    private var spool: FilePath { fixture.folder.path.appending("store").appending("spool") }

    private func spooled() -> [String] { (try? FileManager.default.contentsOfDirectory(atPath: spool.string)) ?? [] }

    private func item(_ name: String, size: Int = 10_000) throws -> TransferItem {
        var item = TransferItem(try fixture.folder.file(name, size: size))
        item.keepsCopy = true
        return item
    }

    @Test func sendsCopyAfterFileVanished() async throws {
        var queue = try await fixture.openWithAccounts()
        let modified = Date(timeIntervalSince1970: 1_000_000_000)
        let items = [try item("1"), try item("empty", size: 0)]
        let content = try fixture.content("1")
        let path = fixture.folder.path.appending("1").string
        try FileManager.default.setAttributes([.modificationDate: modified, .posixPermissions: 0o644], ofItemAtPath: path)
        let session = try await queue.enqueue(.upload(items: items, to: "a"))
        try FileManager.default.removeItem(atPath: path)
        let copy = try #require(try await queue.items(of: session.id).first).source
        let attributes = try FileManager.default.attributesOfItem(atPath: copy.string)
        #expect(attributes[.posixPermissions] as? Int == 0o600 && attributes[.modificationDate] as? Date == modified)
        await queue.shutdown()
        queue = try await fixture.open()
        #expect(spooled().count == 2)
        try await queue.start()
        let status = try await queue.session(session.id).value
        #expect(status.state == .completed)
        #expect(fixture.memory.contents(of: "1") == content && fixture.memory.contents(of: "empty") == Data())
        await queue.shutdown()
        #expect(spooled() == [])
    }

    /// Only the queue's user can read the copy, so the queue stores the file's own permissions for the transport.
    @Test(arguments: [0o644, 0o600, 0o444, 0o4751]) func transportGetsPermissionsOfCopiedFile(mode: Int) async throws {
        let attempts = Locked<[FileAttempt]>([])
        let transport = AttemptRecordingTransport(memory: fixture.memory, attempts: attempts)
        var queue = try await fixture.open(transports: [transport])
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let items: [TransferItem] = [try item("copy"), .data(Data("data".utf8), as: try RemotePath("data"))]
        let path = fixture.folder.path.appending("copy").string
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
        let session = try await queue.enqueue(.upload(items: items, to: "a"))
        try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: path)
        for name in spooled() {
            let attributes = try FileManager.default.attributesOfItem(atPath: spool.appending(name).string)
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
        }
        await queue.shutdown()
        queue = try await fixture.open(transports: [transport])
        try await queue.start()
        #expect(try await queue.session(session.id).value.state == .completed)
        await queue.shutdown()
        #expect(attempts.withLock { $0.count } == 2)
        for attempt in attempts.withLock({ $0 }) {
            let expected = attempt.remotePath.description == "copy" ? FilePermissions(rawValue: CModeT(mode & 0o777)) : nil
            let source = try attempt.source
            #expect(source.isSpooled && source.originalPermissions == expected, "\(attempt.remotePath)")
        }
    }

    @Test func failedItemKeepsCopyUntilSessionIsRemoved() async throws {
        let queue = try await fixture.openWithAccounts()
        fixture.memory.faults.append(.fail(TransferError(.permanent, .rejected, "No.")))
        let (first, second) = (try item("1"), try item("2"))
        let session = try await queue.enqueue(.upload(items: [first], to: "a"))
        let content = try fixture.content("1")
        _ = try fixture.folder.file("1", size: 3)
        try await queue.start()
        await #expect(throws: TransferError.self) { try await session.value }
        #expect(spooled().count == 1)
        try await queue.retry(session.id)
        #expect(try await session.value.state == .completed)
        #expect(fixture.memory.contents(of: "1") == content && spooled() == [])
        let held = try await queue.enqueue(.upload(items: [second], to: "a"), held: true)
        #expect(spooled().count == 1)
        try await queue.remove(held.id)
        #expect(spooled() == [])
        await queue.shutdown()
    }

    @Test func copiesAddedItems() async throws {
        let queue = try await fixture.openWithAccounts()
        let session = try await queue.enqueue(try fixture.upload("1"))
        try await queue.addItems([try item("2")], to: .id(session.id))
        try FileManager.default.removeItem(atPath: fixture.folder.path.appending("2").string)
        try await queue.start()
        #expect(try await session.value.state == .completed)
        await queue.shutdown()
    }

    @Test func copyKeepsHoles() async throws {
        let queue = try await fixture.openWithAccounts()
        let (path, size) = (fixture.folder.path.appending("sparse"), Int64(1) << 30)
        let file = try FileDescriptor.open(path, .writeOnly, options: [.create], permissions: .ownerReadWrite)
        try file.closeAfter {
            try file.resize(to: size)
            try file.writeAll(toAbsoluteOffset: size / 2, "content".utf8)
        }
        var item = TransferItem(path)
        item.keepsCopy = true
        let session = try await queue.enqueue(.upload(items: [item], to: "a"), held: true)
        let source = try #require(try await queue.items(of: session.id).first).source
        var (original, copy) = (stat(), stat())
        let results = unsafe [lstat(path.string, &original), lstat(source.string, &copy)]
        #expect(results == [0, 0])
        #expect(copy.st_size == size && copy.st_blocks <= original.st_blocks + 4_096)
        let reader = try FileDescriptor.open(source, .readOnly)
        defer { try? reader.close() }
        let bytes = try unsafe [UInt8](unsafeUninitializedCapacity: 9) { buffer, count in
            count = try unsafe reader.read(fromAbsoluteOffset: size / 2 - 1, into: UnsafeMutableRawBufferPointer(buffer))
        }
        #expect(bytes == [0] + Array("content".utf8) + [0])
        try await queue.remove(session.id)
        await queue.shutdown()
    }

    @Test func rejectsCopyWithoutSpace() async throws {
        let disk = try SmallDisk(.mounted, in: fixture.folder.path.appending("store"), folder: "spool", megabytes: 1)
        defer { withExtendedLifetime(disk) {} }
        guard disk.kind == .mounted else { return }
        let queue = try await fixture.openWithAccounts()
        let error = try await #require(throws: QueueError.self) {
            try await queue.enqueue(.upload(items: [try item("1", size: 2 << 20)], to: "a"))
        }
        #expect(error.code == .storageUnavailable && error.message.contains("needs 2097152 bytes"), "\(error)")
        #expect(spooled() == [])
        try await queue.enqueue(.upload(items: [try item("2", size: 1 << 19)], to: "a"))
        await queue.shutdown()
    }

    @Test func rejectsFoldersAndUnreadableFiles() async throws {
        let queue = try await fixture.openWithAccounts()
        let good = try item("1")
        var folder = TransferItem(fixture.folder.path)
        folder.keepsCopy = true
        var missing = TransferItem(fixture.folder.path.appending("missing"))
        missing.keepsCopy = true
        for (bad, words) in [(folder, "is a folder"), (missing, "does not exist")] {
            let error = await #expect(throws: QueueError.self) { try await queue.enqueue(.upload(items: [good, bad], to: "a")) }
            #expect(error?.code == .unreadableItems && error?.message.contains(words) == true, "\(String(describing: error))")
            #expect(spooled() == [])
        }
        await queue.shutdown()
    }

    #if os(Linux)
        /// The file is on another file system, so the copy can't share the file's blocks, and would take minutes.
        @Test func cancellationEndsCopy() async throws {
            let queue = try await fixture.openWithAccounts()
            let huge = FilePath("/dev/shm/transferkit-test-\(UUID().uuidString)")
            try FileDescriptor.open(huge, .writeOnly, options: [.create, .exclusiveCreate], permissions: .ownerReadWrite)
                .closeAfter {}
            defer { try? FileManager.default.removeItem(atPath: huge.string) }
            let result = unsafe truncate(huge.string, 1 << 40)
            #expect(result == 0)
            var items = [try item("1"), TransferItem(huge)]
            items[1].keepsCopy = true
            let request = try SessionRequest.upload(items: items, to: "a")
            let enqueueing = Task { try await queue.enqueue(request) }
            while spooled().count < 2 { await Task.yield() }
            enqueueing.cancel()
            await #expect(throws: CancellationError.self) { try await enqueueing.value }
            #expect(spooled() == [])
            #expect(try await queue.sessions().isEmpty)
            let session = try await queue.enqueue(try fixture.upload("2"))
            let adding = Task { [items] in try await queue.addItems(items, to: .id(session.id)) }
            while spooled().count < 2 { await Task.yield() }
            adding.cancel()
            await #expect(throws: CancellationError.self) { try await adding.value }
            #expect(spooled() == [])
            await queue.shutdown()
        }

        /// A file in `/proc` reports a size of 0 but has content, like a file that grows during the copy.
        @Test func rejectsFileThatChanges() async throws {
            let queue = try await fixture.openWithAccounts()
            var changing = TransferItem("/proc/version")
            changing.keepsCopy = true
            let good = try item("1")
            let error = await #expect(throws: QueueError.self) { try await queue.enqueue(.upload(items: [good, changing], to: "a")) }
            #expect(error?.code == .unreadableItems && error?.message.contains("changed while it was being copied") == true)
            #expect(spooled() == [])
            await queue.shutdown()
        }
    #endif

    @Test func duplicateLeavesNoCopy() async throws {
        let queue = try await fixture.openWithAccounts()
        var request = try SessionRequest.upload(items: [try item("1")], to: "a")
        request.deduplicationKey = "key"
        let first = try await queue.enqueue(request)
        request.id = SessionID()
        #expect(try await queue.enqueue(request).id == first.id && spooled().count == 1)
        try FileManager.default.removeItem(atPath: fixture.folder.path.appending("1").string)
        request.id = SessionID()
        #expect(try await queue.enqueue(request).id == first.id && spooled().count == 1)
        await queue.shutdown()
    }

    /// The process is killed after it copied the file, but before it stored the session.
    @Test(.oneProcessAtATime) func openingRemovesCopyOfKilledProcess() async throws {
        try await fixture.openWithAccounts().shutdown()
        let source = try fixture.folder.file("1", size: 10_000).string
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = fixture.folder.path.string as String, source = source as String] in
            var configuration = QueueConfiguration()
            let spool = FilePath(path).appending("store/spool").string
            configuration.storeObserver = { _ in
                guard let names = try? FileManager.default.contentsOfDirectory(atPath: spool), !names.isEmpty else { return }
                kill(getpid(), SIGKILL)
            }
            let queue = try await TransferQueue(
                storage: .folder(FilePath(path).appending("store")), transports: [MemoryTransport()], configuration: configuration)
            var item = TransferItem(FilePath(source))
            item.keepsCopy = true
            try await queue.enqueue(.upload(items: [item], to: "a"))
        }
        #expect(spooled().count == 1)
        let queue = try await fixture.open()
        #expect(spooled() == [])
        #expect(try await queue.sessions().isEmpty)
        await queue.shutdown()
    }
}
