import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportHTTP

/// Files beyond 4 GiB, where 32-bit numbers would overflow.
@Suite struct LargeFileTests {
    private static let size: Int64 = 4 << 30 + 1_000_000

    /// The client sends the whole file with only a small part of it in memory. The test uses a form, whose body is longer than the file.
    @Test func streamsUpload() async throws {
        let readSize = 64 << 20
        let memory = Locked<[Int]>([])
        let recordMemory = ServerStep.call { memory.withLock { $0.append(Self.memoryInUse) } }
        var transfer = try TestTransfer("form", size: 1) { request, _ in
            let reads = Array(repeating: [ServerStep.skip(readSize), recordMemory], count: request.contentLength / readSize).joined()
            let end: [ServerStep] = [.skip(request.contentLength % readSize), .raw("HTTP/1.1 201 Scripted\r\nContent-Length: 0\r\n\r\n")]
            return [.raw("HTTP/1.1 100 Continue\r\n\r\n")] + [recordMemory] + reads + end
        }
        let path = transfer.folder.appending("large")
        let file = try FileDescriptor.open(path, .writeOnly, options: .create, permissions: .ownerReadWrite)
        try file.closeAfter { try file.resize(to: Self.size) }
        transfer.source = UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))
        #expect(try await transfer.run().bytes == Self.size)
        let length = try #require(transfer.server.requests.first?.contentLength)
        #expect(length > Self.size)
        let used = memory.withLock { $0 }
        #expect(used.count > 60)
        // Other tests in this process temporarily use more than 1 GiB. A file in memory would use 4 GiB.
        #expect((used.max() ?? 0) - (used.first ?? 0) < 3 << 30, "bytes of memory: \(used)")
        await transfer.end()
    }

    @Test func resumesDownloadBeyond4GiB() async throws {
        let before = Self.size - 10
        let transfer = try TestTransfer("get") { request, _ in
            #expect(request.headers["range"] == "bytes=\(before)-")
            return [
                .answer(206, ["ETag": "\"v1\"", "Content-Range": "bytes \(before)-\(Self.size - 1)/\(Self.size)"], body: "0123456789")
            ]
        }
        let partFile = try FileDescriptor.open(
            transfer.folder.appending(".file.part"), .writeOnly, options: .create, permissions: .ownerReadWrite)
        try partFile.closeAfter { try partFile.resize(to: before) }
        let checkpoint = Checkpoint(data: Data(#"{"validator":"\"v1\"","length":\#(Self.size)}"#.utf8), confirmed: before)
        #expect(try await transfer.run(from: checkpoint).bytes == Self.size)
        let received = try FileHandle(forReadingFrom: URL(fileURLWithPath: transfer.folder.appending("file").string))
        defer { try? received.close() }
        try received.seek(toOffset: UInt64(before - 1))
        #expect(try received.readToEnd() == Data([0]) + Data("0123456789".utf8))
        await transfer.end()
    }

    /// The resident memory of this process in bytes: the second field of statm, in pages (proc(5)).
    private static var memoryInUse: Int {
        let text = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
        return text.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 4_096 } ?? 0
    }
}
