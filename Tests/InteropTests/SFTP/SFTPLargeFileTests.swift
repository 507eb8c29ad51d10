import Foundation
import Locking
import SSHFixture
import SystemPackage
import Testing
import TransferCore

@Suite(.timeLimit(.minutes(10)))
struct SFTPLargeFileTests {
    @Test func exchangesKeysDuringTransfer() async throws {
        let folder = try await SFTPServerFolder(options: ["RekeyLimit 512K", "LogLevel DEBUG1"])
        let content = Data.nonRepeating(4 << 20)
        try content.write(to: folder.local.appending(path: "source"))
        _ = try await folder.transfer(.upload(folder.source("source")), "file")
        #expect(try Data(contentsOf: folder.files.appending(path: "file")) == content)
        _ = try await folder.transfer(.download(folder.destination("received")), "file")
        #expect(try Data(contentsOf: folder.local.appending(path: "received")) == content)
        // At this log level, the server logs each key exchange, including the first.
        #expect(folder.server.log.components(separatedBy: "rekey").count > 10, "\(folder.server.log.suffix(2000))")
        await folder.close()
    }

    /// Transfers a file of more than 4 GiB, where 32-bit numbers would overflow. Only the last 2 MB are transferred, because the checkpoint
    /// covers the bytes before them. The SSH keys change frequently.
    @Test func transfersBeyondFourGibibytes() async throws {
        let folder = try await SFTPServerFolder(options: ["RekeyLimit 256K", "LogLevel DEBUG1"])
        let (before, size): (Int64, Int64) = ((4 << 30) - 1_000_000, (4 << 30) + 1_000_000)
        let end = Data.nonRepeating(Int(size - before))
        let source = folder.local.appending(path: "source")
        try make(source, size: size, end: end)
        let checkpoints = Locked<[Checkpoint]>([])
        // The checkpoint of the small file is also valid for the large file, because a checkpoint identifies an upload only by the remote
        // names, which are the same for both files.
        try Data("abc".utf8).write(to: folder.local.appending(path: "small"))
        _ = try await folder.transfer(.upload(folder.source("small")), "file", recording: checkpoints)
        try FileManager.default.removeItem(at: folder.files.appending(path: "file"))
        try make(folder.files.appending(path: ".tq-t-1.part"), size: before)
        let upload = Checkpoint(data: try #require(checkpoints.withLock { $0.first }).data, confirmed: before)
        #expect(try await folder.transfer(.upload(folder.source("source")), "file", from: upload).bytes == size)
        #expect(try self.end(of: folder.files.appending(path: "file"), from: before) == end)

        let time = try #require(
            try FileManager.default.attributesOfItem(atPath: folder.files.appending(path: "file").path)[.modificationDate] as? Date)
        let version = #"{"size":\#(size),"modificationTime":\#(Int(time.timeIntervalSince1970))}"#
        try make(folder.local.appending(path: ".received.part"), size: before)
        let download = Checkpoint(data: Data(version.utf8), confirmed: before)
        #expect(try await folder.transfer(.download(folder.destination("received")), "file", from: download).bytes == size)
        #expect(try self.end(of: folder.local.appending(path: "received"), from: before) == end)
        #expect(folder.server.log.components(separatedBy: "rekey").count > 10, "\(folder.server.log.suffix(2000))")
        await folder.close()
    }

    /// Creates a sparse file that ends with the given bytes.
    private func make(_ url: URL, size: Int64, end: Data = Data()) throws {
        let file = try FileDescriptor.open(
            FilePath(url.path), .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: .ownerReadWrite)
        try file.closeAfter {
            try file.resize(to: size)
            _ = try file.writeAll(toAbsoluteOffset: size - Int64(end.count), end)
        }
    }

    private func end(of url: URL, from offset: Int64) throws -> Data? {
        let file = try FileHandle(forReadingFrom: url)
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(offset))
        return try file.readToEnd()
    }

    /// Each range of the file has its own connection. After all connections break, each range resumes separately.
    @Test func resumesRangesAfterLostConnections() async throws {
        let folder = try await SFTPServerFolder()
        let relay = try CuttingRelay(to: Int(folder.server.port))
        defer { relay.stop() }
        let content = Data.nonRepeating(6 << 20)
        try content.write(to: folder.local.appending(path: "source"))
        let source = try folder.source("source")
        let endpoint = try folder.endpoint(port: relay.port, ["maxConnections": "2", "parallelThreshold": "1"])
        let checkpoints = Locked<[Checkpoint]>([])
        // 4 MiB is more than the size of one range (3 MiB), so both ranges are in flight when the connections break.
        relay.cut(.fromClient, inAllAfter: 4 << 20)
        let options = AttemptOptions(verification: .checksum, segmentsPerFile: 2)
        let error = await #expect(throws: TransferError.self) {
            try await folder.transfer(.upload(source), "file", at: endpoint, options, recording: checkpoints)
        }
        #expect(error?.failureClass == .transient)
        let checkpoint = try #require(checkpoints.withLock { $0.last })
        let receipt = try await folder.transfer(.upload(source), "file", at: endpoint, from: checkpoint, options)
        #expect(receipt.checksum?.hasPrefix("sha256:") == true && receipt.warnings.isEmpty)
        #expect(try Data(contentsOf: folder.files.appending(path: "file")) == content)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path) == ["file"])
        await folder.close()
    }
}
