import Foundation
import Locking
import SSHFixture
import Testing
import TransferCore

private let mayMount = (try? SSHServerProcess.run("/usr/bin/unshare", ["-m", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])) != nil

/// Uploads to OpenSSH's server on a disk that is too small. These tests are skipped if the process is not allowed to mount file systems.
/// Mounting requires root.
@Suite(.timeLimit(.minutes(10)), .enabled(if: mayMount, "requires the right to mount a file system"))
struct SFTPFullDiskTests {
    /// Starts a server whose folder is a separate file system, which other processes do not see.
    private func folder(size: String) async throws -> SFTPServerFolder {
        let mount = "mount -t tmpfs -o size=\(size) tmpfs $folder/files && exec /usr/lib/openssh/sftp-server"
        return try await SFTPServerFolder(subsystems: ["sftp": "export folder; exec unshare -m /bin/sh -c '\(mount)'"])
    }

    @Test func doesNotStartUploadWithoutSpace() async throws {
        let folder = try await folder(size: "4m")
        try Data.nonRepeating(6 << 20).write(to: folder.local.appending(path: "large"))
        try Data.nonRepeating(2 << 20).write(to: folder.local.appending(path: "small"))
        // All transfers share one connection, because each connection has its own file system.
        let endpoint = try folder.endpoint(["maxConnections": "1"])
        let sent = Locked<Int64>(0)
        let error = await #expect(throws: TransferError.self) {
            try await folder.transfer(.upload(try folder.source("large")), "large", at: endpoint) { bytes in sent.withLock { $0 = bytes } }
        }
        #expect(sent.withLock { $0 } == 0)
        #expect(error?.failureClass == .remoteFull && error?.code == .remoteFull, "\(error?.description ?? "")")
        #expect(error?.message.contains("bytes free") == true, "\(error?.message ?? "")")
        // The server stored no bytes of the large file, so the small file still fits, and can be downloaded.
        _ = try await folder.transfer(.upload(try folder.source("small")), "small", at: endpoint)
        _ = try await folder.transfer(.download(folder.destination("received")), "small", at: endpoint)
        #expect(try Data(contentsOf: folder.local.appending(path: "received")) == Data.nonRepeating(2 << 20))
        await folder.close()
    }

    /// For files this small, the transport does not query the free space, and the server reports only a generic failure.
    @Test func reportsFullDisk() async throws {
        let folder = try await folder(size: "256k")
        try Data.nonRepeating(900_000).write(to: folder.local.appending(path: "source"))
        let error = await #expect(throws: TransferError.self) { try await folder.transfer(.upload(try folder.source("source")), "file") }
        #expect(error?.failureClass == .remoteFull && error?.code == .remoteFull, "\(error?.description ?? "")")
        await folder.close()
    }
}
