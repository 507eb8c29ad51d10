import Foundation
import GRDB
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

@Suite struct BadItemTests {
    @Test func reportsAllUnreadableItemsAndAddsNothing() async throws {
        let fixture = try QueueFixture()
        let tree = try FolderTree(fixture.folder.path.appending("tree"))
        let queue = try await fixture.openWithAccounts()
        try tree.fifo("pipe")
        try tree.link("loop", to: "loop")
        try tree.link("dangling", to: "missing")
        let socket = try FolderTree.socket(at: tree.path("s"))
        defer { close(socket) }
        let paths = ["missing", "pipe", "loop", "dangling", "s"].map { tree.path($0) }
        let long = tree.root.appending(String(repeating: "n", count: 256))
        let good = try tree.file("good")
        let error = try await #require(throws: QueueError.self) {
            try await queue.enqueue(
                try .upload(
                    items: ([good] + paths + ["/dev/null", long, "", "/"]).map { TransferItem($0) }
                        + [.data(Data([1]), as: try RemotePath("blob"))], to: "a"))
        }
        #expect(error.code == .unreadableItems)
        let lines = error.message.split(separator: "\n").map(String.init)
        #expect(
            lines == [
                "\(paths[0]) does not exist.",
                "\(paths[1]) is a FIFO. Only regular files and folders can be sent.",
                "Cannot read \(paths[2]): too many levels of symbolic links.",
                "\(paths[3]) is a symbolic link whose target does not exist.",
                "\(paths[4]) is a socket. Only regular files and folders can be sent.",
                "/dev/null is a device. Only regular files and folders can be sent.",
                "Cannot read \(long).",
                "An item has an empty path.",
                "/ has no name to use on the server. Give the item a remote name.",
            ])
        #expect(await queue.status().sessions == 0)
        #expect(!FileManager.default.fileExists(atPath: fixture.folder.path.appending("store").appending("spool").string))
        await queue.shutdown()
    }

    @Test func resolvesNamesOfDotFolders() async throws {
        let fixture = try ItemFixture()
        try fixture.tree.file("sub/x")
        let store = try await fixture.open([
            TransferItem(fixture.tree.path("sub").appending(".")), TransferItem(fixture.tree.path("sub").appending("..")),
        ])
        #expect(try await fixture.items(store).destinations() == ["sub", "tree"])
        await store.close()
    }

    /// The superuser can read every file, so the test runs in a child process that becomes an unprivileged user.
    @Test(.oneProcessAtATime) func reportsMissingPermissions() async throws {
        await #expect(processExitsWith: .success) {
            if geteuid() == 0 { try #require(seteuid(65_534) == 0) }
            let fixture = try ItemFixture()
            try fixture.tree.file("open/a", "1")
            let locked = try fixture.tree.folder("open/locked")
            let file = try fixture.tree.file("file", "1")
            for path in [locked, file] { try path.setPermissions(0) }
            let store = try await fixture.open([TransferItem(fixture.tree.path("open"))])
            let error = try await #require(throws: QueueError.self) {
                _ = try await store.drafts(of: [TransferItem(locked), TransferItem(file)])
            }
            #expect(
                error.message == """
                    Cannot read \(locked): permission denied. Check its permissions.
                    Cannot read \(file): permission denied. Check its permissions.
                    """)
            try await fixture.expand(store)
            let items = try await fixture.items(store)
            #expect(items.destinations() == ["open/a"] && items.destinations(.failed) == ["open/locked"])
            #expect(items.last?.error?.message == "Cannot read \(locked): permission denied. Check its permissions.")
            try locked.setPermissions(0o700)
            try fixture.tree.file("open/locked/b", "2")
            try await store.commit([.resetSession(1, isWhole: false)])
            try await fixture.expand(store)
            #expect(try await fixture.items(store).destinations() == ["open/a", "open/locked/b"])
            #expect(try await fixture.statistics(store).map { [Int64($0.files), Int64($0.filesFailed), $0.bytesKnown] } == [2, 0, 2])
            await store.close()
        }
    }
}

extension FolderTree {
    /// Creates a socket. Uses a short symbolic link to the socket's folder, because the length of a socket's path is limited (unix(7)).
    fileprivate static func socket(at path: FilePath) throws -> CInt {
        let short = FilePath("/tmp/\(UUID().uuidString.prefix(8))")
        try FileManager.default.createSymbolicLink(
            atPath: short.string, withDestinationPath: path.removingLastComponent().string)
        defer { try? FileManager.default.removeItem(atPath: short.string) }
        guard let name = path.lastComponent else { throw Errno.invalidArgument }
        #if canImport(Glibc)
            let descriptor = Glibc.socket(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0)
        #else
            let descriptor = Darwin.socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = short.appending(name).bytes
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: bytes) }
        let result = unsafe withUnsafePointer(to: &address) {
            unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw Errno(rawValue: errno) }
        return descriptor
    }
}
