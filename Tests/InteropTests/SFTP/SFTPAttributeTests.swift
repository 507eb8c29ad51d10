import Foundation
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct SFTPAttributeTests {
    private static let time = Date(timeIntervalSince1970: 1_234_567_890)

    private static func attributes(_ url: URL) throws -> (time: Date?, mode: Int?) {
        let found = try FileManager.default.attributesOfItem(atPath: url.path)
        return (found[.modificationDate] as? Date, found[.posixPermissions] as? Int)
    }

    @Test(arguments: [true, false], [true, false]) func keepsAttributesIfConfigured(isUpload: Bool, keepsAttributes: Bool) async throws {
        let folder = try await SFTPServerFolder()
        let endpoint = try folder.endpoint(["keepTimes": "\(keepsAttributes)", "keepModes": "\(keepsAttributes)"])
        let (from, to) = isUpload ? (folder.local, folder.files) : (folder.files, folder.local)
        for mode in [0o640, 0o400, 0o755] {
            let (source, target) = (from.appending(path: "file"), to.appending(path: "file"))
            try Data("abc".utf8).write(to: source)
            try FileManager.default.setAttributes([.modificationDate: Self.time, .posixPermissions: mode], ofItemAtPath: source.path)
            let receipt = try await folder.transfer(
                isUpload ? .upload(try folder.source("file")) : .download(folder.destination("file")), "file", at: endpoint)
            #expect(receipt.warnings.isEmpty, "\(receipt.warnings)")
            let copied = try Self.attributes(target)
            // `plain` has the permissions of any new file, because the server and the tests run as the same user, with the same umask.
            let plain = folder.local.appending(path: "plain")
            try Data().write(to: plain)
            // Other users never get more permissions than the source grants. The owner can always write a downloaded file.
            let usual = try Self.attributes(plain).mode.map { $0 & (isUpload ? mode : mode | 0o600) }
            #expect(copied.mode == (keepsAttributes ? mode : usual), "\(String(mode, radix: 8))")
            #expect((copied.time == Self.time) == (keepsAttributes || !isUpload), "a download always keeps the time")
            for file in [source, target, plain] { try FileManager.default.removeItem(at: file) }
        }
        await folder.close()
    }

    /// The queue sends its own copies of the files. Only the queue's user can read the copies.
    @Test(arguments: [true, false]) func copiesArriveWithPermissionsOfSources(keepsModes: Bool) async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let account = Account("real", endpoints: [try folder.endpoint(["keepModes": "\(keepsModes)"])])
        let queue = try await interop.openQueue(account, transports: [SFTPTransport()])
        let modes = [0o600, 0o640, 0o444, 0o755]
        var items = try modes.map { mode -> TransferItem in
            let file = folder.local.appending(path: "\(mode)")
            try Data("abc".utf8).write(to: file)
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file.path)
            var item = TransferItem(FilePath(file.path))
            item.keepsCopy = true
            return item
        }
        items.append(.data(Data("abc".utf8), as: try RemotePath("data")))
        let session = try await queue.enqueue(try .upload(items: items, to: "real"))
        for mode in modes { try FileManager.default.removeItem(at: folder.local.appending(path: "\(mode)")) }
        try await queue.start()
        #expect(try await session.value.state == .completed)
        // `plain` has the permissions of any new file, because the server and the tests run as the same user, with the same umask.
        let plain = folder.local.appending(path: "plain")
        try Data().write(to: plain)
        let usual = try #require(try Self.attributes(plain).mode)
        for mode in modes {
            let copied = try Self.attributes(folder.files.appending(path: "\(mode)")).mode
            #expect(copied == (keepsModes ? mode : mode & usual), "\(String(mode, radix: 8))")
        }
        #expect(try Self.attributes(folder.files.appending(path: "data")).mode == usual, "bytes from memory have no source file")
        await queue.shutdown()
        await folder.close()
    }

    @Test func createsFolders() async throws {
        let folder = try await SFTPServerFolder()
        try Data("abc".utf8).write(to: folder.local.appending(path: "source"))
        let receipt = try await folder.transfer(.upload(try folder.source("source")), "new/it's new/file")
        #expect(try Data(contentsOf: folder.files.appending(path: "new/it's new/file")) == Data("abc".utf8))
        #expect(receipt.remoteURL?.hasSuffix("/new/it%27s%20new/file") == true, "\(receipt.remoteURL ?? "")")
        await folder.close()
    }
}
