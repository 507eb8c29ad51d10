import Foundation
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A queue opens a folder only if no other user can change the folder, and never follows links in the folder.
@Suite struct StorageFolderTests {
    private let fixture: QueueFixture
    private let storageFolder: FilePath

    init() throws {
        fixture = try QueueFixture()
        storageFolder = fixture.folder.path.appending("store")
        try Self.make(storageFolder)
    }

    private static func make(_ folder: FilePath, mode: mode_t = 0o700) throws {
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        #expect(unsafe chmod(folder.string, mode) == 0)
    }

    private func openingError(_ folder: FilePath? = nil) async throws -> String? {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        do {
            let queue = try await TransferQueue(
                storage: .folder(folder ?? storageFolder), transports: [fixture.memory], configuration: configuration)
            await queue.shutdown()
            return nil
        } catch {
            let error = try #require(error as? QueueError)
            #expect(error.code == .storageUnavailable, "\(error)")
            return error.message
        }
    }

    @Test(arguments: ["owner.lock", "queue.sqlite", "queue.sqlite-wal", "queue.sqlite-shm", "queue.sqlite-journal"])
    func rejectsLinkedFiles(name: String) async throws {
        let victim = try fixture.folder.file("victim", size: 10)
        let before = try fixture.content("victim")
        for target in [victim, fixture.folder.path.appending("missing")] {
            let link = storageFolder.appending(name).string
            try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: target.string)
            let message = try #require(try await openingError())
            #expect(message.contains(name) && message.contains("links"), "\(message)")
            try FileManager.default.removeItem(atPath: link)
        }
        #expect(try fixture.content("victim") == before)
        #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.folder.path.string).sorted() == ["store", "victim"])
        #expect(try await openingError() == nil)
    }

    /// A hard link has the same type and owner as its file, so only the number of links reveals the hard link.
    @Test func rejectsHardLinkedLock() async throws {
        let victim = try fixture.folder.file("victim", size: 10)
        let before = try fixture.content("victim")
        let link = storageFolder.appending("owner.lock").string
        try FileManager.default.linkItem(atPath: victim.string, toPath: link)
        let message = try #require(try await openingError())
        #expect(message.contains("owner.lock") && message.contains("hard link"), "\(message)")
        #expect(try fixture.content("victim") == before)
        try FileManager.default.removeItem(atPath: link)
        #expect(try await openingError() == nil)
    }

    @Test func rejectsLinkedSpool() async throws {
        let other = fixture.folder.path.appending("other")
        try Self.make(other)
        try FileManager.default.createSymbolicLink(atPath: storageFolder.appending("spool").string, withDestinationPath: other.string)
        let message = try #require(try await openingError())
        #expect(message.contains("spool"), "\(message)")
    }

    @Test(arguments: ["../../victim", "/etc/passwd", "..", ".", "", "a/b"]) func keepsFilesOutsideSpool(name: String) async throws {
        let victim = try fixture.folder.file("victim", size: 10)
        let queue = try await fixture.open()
        await queue.shutdown()
        let store = try await QueueStore.open(.folder(storageFolder), clock: .system)
        var draft = ItemDraft(kind: .blob, source: Data(name.utf8), destination: Data("d".utf8), size: 1)
        await store.discardBlobs(of: [draft])
        draft.kind = .stream
        await store.discardBlobs(of: [draft])
        await store.close()
        #expect(FileManager.default.fileExists(atPath: victim.string))
    }

    @Test(arguments: [(0o777, false), (0o722, false), (0o1777, false), (0o755, true), (0o700, true)] as [(mode_t, Bool)])
    func checksModeOfFolder(mode: mode_t, isTrusted: Bool) async throws {
        try Self.make(storageFolder, mode: mode)
        let message = try await openingError()
        #expect((message == nil) == isTrusted, "\(message ?? "")")
        if let message { #expect(message.contains("chmod go-w"), "\(message)") }
    }

    /// A user may paste the command from the message into a shell.
    @Test func quotesFolderInCommand() async throws {
        let folder = fixture.folder.path.appending("a'; touch b #")
        try Self.make(folder, mode: 0o777)
        #expect(try await openingError(folder)?.contains(#"a'\''; touch b #', or"#) == true)
    }

    @Test(arguments: [(0o777, false), (0o1777, true), (0o755, true)] as [(mode_t, Bool)])
    func checksModeOfParentFolder(mode: mode_t, isTrusted: Bool) async throws {
        let parent = fixture.folder.path.appending("parent")
        try Self.make(parent.appending("queue"))
        try Self.make(parent, mode: mode)
        let message = try await openingError(parent.appending("queue"))
        #expect((message == nil) == isTrusted, "\(message ?? "")")
        // The same rule applies to a link outside the parent folder that leads to the storage folder, and to a link inside the parent
        // folder.
        let link = fixture.folder.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: parent.appending("queue").string)
        #expect((try await openingError(link) == nil) == isTrusted)
        try FileManager.default.createSymbolicLink(atPath: parent.appending("link").string, withDestinationPath: storageFolder.string)
        #expect((try await openingError(parent.appending("link")) == nil) == isTrusted)
    }

    @Test(.enabled(if: geteuid() == 0, "Only root can give a folder to another user")) func rejectsFoldersOfOtherUsers() async throws {
        #expect(unsafe chown(storageFolder.string, 65_534, 65_534) == 0)
        let message = try #require(try await openingError())
        #expect(message.contains("another user (user ID 65534)"), "\(message)")
        let parent = fixture.folder.path.appending("parent")
        try Self.make(parent.appending("queue"))
        #expect(unsafe chown(parent.string, 65_534, 65_534) == 0)
        #expect(try await openingError(parent.appending("queue"))?.contains("parent") == true)
        // The owner of a sticky folder can replace the folders in it.
        try Self.make(parent, mode: 0o1777)
        #expect(try await openingError(parent.appending("queue"))?.contains("another user (user ID 65534)") == true)
        #expect(unsafe chown(parent.string, 0, 0) == 0)
        #expect(try await openingError(parent.appending("queue")) == nil)
        // The owner of a link could change the link's target at any time.
        let mine = fixture.folder.path.appending("mine")
        try Self.make(mine)
        let link = fixture.folder.path.appending("link")
        try FileManager.default.createSymbolicLink(atPath: link.string, withDestinationPath: mine.string)
        #expect(try await openingError(link) == nil)
        #expect(unsafe lchown(link.string, 65_534, 65_534) == 0)
        #expect(try await openingError(link)?.contains("link owned by another user") == true)
    }

    /// The queue accepts write access for a group whose ID equals the user's ID. By convention, such a group is private to the user.
    @Test(.enabled(if: geteuid() == 0, "Only root can give a folder to another group")) func checksGroupOfFolder() async throws {
        try Self.make(storageFolder, mode: 0o770)
        #expect(try await openingError() == nil)
        #expect(unsafe chown(storageFolder.string, 0, 65_534) == 0)
        #expect(try await openingError()?.contains("chmod go-w") == true)
    }
}
