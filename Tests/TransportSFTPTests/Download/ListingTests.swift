import Foundation
import Glibc
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransportSFTP
import TransportTesting

extension ProcessFixture: ListingFixture {
    func makeFolder(_ path: RemotePath) async throws {
        try FileManager.default.createDirectory(
            at: server.appending(path: path.description), withIntermediateDirectories: true)
    }
}

@Suite(.timeLimit(.minutes(10)))
struct ListingTests {
    @Test(arguments: ListingPromise.allCases)
    func keepsListingPromise(_ promise: ListingPromise) async throws {
        try await ProcessFixture.with { try await promise.verify($0) }
    }

    private func entries(
        of folder: String, _ fixture: ProcessFixture, resolvesLinks: Bool = false
    ) async throws -> Set<RemoteEntry> {
        let listed = Locked<[RemoteEntry]>([])
        let transport = try #require(fixture.transport as? any FolderListing)
        try await transport.list(
            ListingAttempt(
                endpoint: fixture.endpoint, remotePath: try RemotePath(folder), resolvesLinks: resolvesLinks,
                credentials: fixture.credentials, logger: Logger(label: "test"))
        ) { entries in listed.withLock { $0 += entries } }
        let entries = listed.withLock { $0 }
        #expect(Set(entries).count == entries.count)
        return Set(entries)
    }

    private func entry(_ name: String, _ kind: RemoteEntry.Kind) -> RemoteEntry { RemoteEntry(name: Array(name.utf8), kind: kind) }

    @Test func reportsTypesOfEntries() async throws {
        try await ProcessFixture.with { fixture in
            let folder = fixture.server.appending(path: "f")
            try FileManager.default.createDirectory(at: folder.appending(path: "folder"), withIntermediateDirectories: true)
            try Data(count: 12).write(to: folder.appending(path: "file"))
            let links = ["to-file": "file", "to-folder": "folder", "nowhere": "missing", "loop": "loop", "out": "/etc/passwd"]
            for (name, target) in links {
                try FileManager.default.createSymbolicLink(atPath: folder.appending(path: name).path, withDestinationPath: target)
            }
            let fifo = unsafe mkfifo(folder.appending(path: "fifo").path, 0o600)
            #expect(fifo == 0)
            let plain = [entry("folder", .folder), entry("file", .file(size: 12)), entry("fifo", .other)]
            #expect(try await entries(of: "f", fixture) == Set(plain + links.keys.map { entry($0, .symbolicLink) }))
            let size = try #require(try FileManager.default.attributesOfItem(atPath: "/etc/passwd")[.size] as? Int64)
            let resolved = [
                entry("to-file", .file(size: 12)), entry("out", .file(size: size)), entry("to-folder", .symbolicLink),
                entry("nowhere", .symbolicLink), entry("loop", .symbolicLink),
            ]
            #expect(try await entries(of: "f", fixture, resolvesLinks: true) == Set(plain + resolved))
        }
    }

    @Test func preservesNamesThatAreNotUTF8() async throws {
        try await ProcessFixture.with { fixture in
            let name: [UInt8] = [0xFF, 0x61, 0xC3, 0x28, 0x0A]
            let path = FilePath(fixture.server.path).appending(Array("f".utf8))
            try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
            try FileDescriptor.open(path.appending(name), .writeOnly, options: .create, permissions: .ownerReadWrite).close()
            #expect(try await entries(of: "f", fixture) == [RemoteEntry(name: name, kind: .file(size: 0))])
        }
    }

    /// Skipped for root, who can read all folders.
    @Test(.enabled(if: getuid() != 0)) func reportsUnreadableFolder() async throws {
        try await ProcessFixture.with { fixture in
            let folder = fixture.server.appending(path: "locked")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0])
            let error = await #expect(throws: TransferError.self) { try await entries(of: "locked", fixture) }
            #expect(error?.failureClass == .permanent && error?.code == .forbidden)
        }
    }

    @Test func reportsFolderInPlaceOfFile() async throws {
        try await ProcessFixture.with { fixture in
            try await fixture.makeFolder(try RemotePath("f"))
            let error = await #expect(throws: TransferError.self) { try await TestTransfer(fixture, "f").download() }
            #expect(error?.code == .isFolder && error?.message == "f is a folder at pipe, not a file.")
        }
    }
}
