import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportHTTP

/// Web servers that claim impossible lengths or ranges in their responses to uploads, tested with a real queue. The queue never traps,
/// quarantines no session, and explains why each unfinished session has not completed.
@Suite(.timeLimit(.minutes(10)))
struct UploadResponseTests {
    /// The status and the header fields of each response. The first response is valid.
    private static let claims: [(status: Int, headers: String)] = [
        (201, "Content-Length: 0"),
        (201, "Content-Length: 9223372036854775807"),
        (201, "Content-Length: 18446744073709551616"),
        (201, "Content-Length: -1"),
        (201, "Content-Length: 0\r\nUpload-Offset: -9223372036854775808\r\nUpload-Length: 18446744073709551615"),
        (200, "Content-Length: 0\r\nContent-Range: bytes 0-9223372036854775807/9223372036854775808"),
        (206, "Content-Length: 0\r\nContent-Range: bytes 9-0/-1"),
        (308, "Content-Length: 0\r\nRange: bytes=0-18446744073709551615"),
        (413, "Content-Length: 0\r\nContent-Range: bytes */18446744073709551616"),
        (416, "Content-Length: 0\r\nContent-Range: bytes */-9223372036854775808"),
        (507, "Content-Length: 9223372036854775807\r\nContent-Range: bytes 0-0/0"),
    ]

    private static let sizes: [Int64] = [0, 1 << 31, 1 << 32, (1 << 56) - 1, 1 << 56, 1 << 60, .max]

    /// The numbers of files per session, and the responses to them. All files of a session get the same response.
    private static let sessions: [(count: Int, claim: Int)] =
        claims.indices.map { (count: 1, claim: $0) } + [0, 3, 9].map { (count: 17, claim: $0) }

    /// Creates a sparse file. Returns nil if no file system of this machine supports its size.
    private func sparseFile(_ size: Int64, in interop: InteropFixture) -> FilePath? {
        for folder in [interop.folder.path, "/dev/shm"] {
            let path = FilePath(folder).appending("transferkit-\(UUID().uuidString)")
            guard let file = try? FileDescriptor.open(path, .writeOnly, options: .create, permissions: .ownerReadWrite) else { continue }
            defer { try? file.close() }
            if (try? file.resize(to: size)) != nil { return path }
            try? FileManager.default.removeItem(atPath: path.string)
        }
        return nil
    }

    /// Whether a session may still make progress.
    private static func mayProgress(_ status: SessionStatus) -> Bool { status.state != .completed && status.state != .failed }

    /// Uploads one file, under several names, in several sessions. The server responds to a large file before it receives content, so only an
    /// empty file can arrive. The queue does not accept impossible sizes.
    @Test(arguments: sizes, OverwritePolicy.allCases.flatMap { policy in ["put", "form"].map { (mode: $0, policy: policy) } })
    func toleratesAnyResponseToUpload(size: Int64, kind: (mode: String, policy: OverwritePolicy)) async throws {
        let interop = try InteropFixture()
        let file = try #require(sparseFile(size, in: interop), "no file system of this machine supports files of \(size) bytes")
        defer { try? FileManager.default.removeItem(atPath: file.string) }
        let server = try ScriptedServer { request, _ in
            let number = request.path.split(separator: "/").first.flatMap { Int($0) } ?? 0
            let (status, headers) = Self.claims[number]
            let reading: [ServerStep] = request.contentLength <= 1 << 20 ? [.read(nil)] : []
            return reading + [.raw("HTTP/1.1 \(status) Scripted\r\n\(headers)\r\n\r\n"), .close]
        }
        let clock = AdvanceableClock()
        let accounts = Self.claims.indices.map { number in
            Account("\(number)", endpoints: [.http("http+\(kind.mode)://127.0.0.1:\(server.port)/\(number)/")])
        }
        var queue = try await interop.openQueue(accounts[0], transports: [HTTPTransport()], clock: clock.engineClock)
        for account in accounts.dropFirst() { try await queue.save(account) }
        let options = SessionOptions(
            retry: RetryPolicy(base: .zero, maximumAttempts: 1), filesInFlight: 17, overwrite: kind.policy)
        var sessions: [(id: SessionID, claim: Int, count: Int)] = []
        for (count, claim) in Self.sessions {
            let items = try (0..<count).map { TransferItem(file, as: try RemotePath("\($0)")) }
            let isPossible = size <= FileSize.maximum && Int64(count) <= FileSize.sessionMaximum / max(size, 1)
            do {
                sessions.append((try await queue.enqueue(.upload(items: items, to: "\(claim)", options: options)).id, claim, count))
                #expect(isPossible, "\(count) files of \(size) bytes")
            } catch let error as QueueError {
                #expect(!isPossible && error.code == .unreadableItems && error.message.contains("iB"), "\(count) files: \(error)")
            }
        }
        try await queue.start()
        await queue.waitUntilIdle(scheduled: false)
        while let due = await queue.status().nextDue, try await queue.sessions().contains(where: Self.mayProgress) {
            clock.advance(by: max(.seconds(due.timeIntervalSince(clock.date)), .milliseconds(1)))
            await queue.waitUntilIdle(scheduled: false)
        }
        for (id, number, count) in sessions {
            let status = try await queue.session(id).status
            if size > 0 { #expect(status.state != .completed, "\(Self.claims[number])") }
            if size == 0, number == 0, status.state != .completed {
                // The server closes each connection, even while another request begins to use it. The transport does not repeat a form that the
                // server may have handled.
                #expect(kind.mode == "form" && status.error?.message.contains("unknown whether") == true, "\(count) files: \(status)")
            }
            #expect((0...FileSize.sessionMaximum).contains(status.statistics.bytesKnown))
            if status.state == .completed { continue }
            #expect(status.why?.description.hasSuffix(".") ?? status.error?.message.hasSuffix(".") == true, "\(status)")
        }
        _ = try await queue.statistics()
        #expect(try await queue.quarantined().isEmpty)
        await queue.shutdown()
        queue = try await interop.openQueue(accounts[0], transports: [HTTPTransport()], clock: clock.engineClock)
        #expect(try await queue.sessions().count == sessions.count)
        try await queue.apply(.remove(isForced: true), to: .all)
        #expect(try await queue.quarantined().isEmpty)
        await queue.shutdown()
        server.stop()
    }
}
