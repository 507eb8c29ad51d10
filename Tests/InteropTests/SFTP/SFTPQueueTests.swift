import Foundation
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct SFTPQueueTests {
    private func openQueue(_ interop: InteropFixture, _ folder: SFTPServerFolder, port: UInt16? = nil) async throws -> TransferQueue {
        try await interop.openQueue(Account("real", endpoints: [try folder.endpoint(port: port)]), transports: [SFTPTransport()])
    }

    @Test func transfersThousandFilesBothWays() async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let queue = try await openQueue(interop, folder)
        var contents: [String: Data] = [:]
        for number in 0..<1_000 {
            contents["file \(number)"] = Data.nonRepeating(number * 7)
            try contents["file \(number)"]?.write(to: folder.local.appending(path: "file \(number)"))
        }
        let upload = try await queue.enqueue(
            try .upload(contents.keys.sorted().map { FilePath(folder.local.appending(path: $0).path) }, to: "real"))
        try await queue.start()
        #expect(try await upload.value.statistics.filesDone == 1_000)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path).count == 1_000)
        let target = interop.folder.appending(path: "target")
        try FileManager.default.createDirectory(at: target, withIntermediateDirectories: false)
        let download = try await queue.enqueue(
            try .download(items: contents.keys.sorted().map { .remote(try RemotePath($0)) }, from: "real", to: FilePath(target.path)))
        #expect(try await download.value.statistics.filesDone == 1_000)
        await queue.waitUntilIdle()
        for received in [folder.files, target] {
            #expect(try Set(FileManager.default.contentsOfDirectory(atPath: received.path)) == Set(contents.keys))
            for (name, content) in contents { #expect(try Data(contentsOf: received.appending(path: name)) == content, "\(name)") }
        }
        // All files share the permitted number of connections.
        let logins = folder.server.log.components(separatedBy: "Accepted publickey").count - 1
        #expect((1...2).contains(logins), "\(logins)")
        await queue.shutdown()
        await folder.close()
    }

    /// The length of the stream is unknown until its end. The connection breaks in the middle.
    @Test func uploadsStream() async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let relay = try CuttingRelay(to: Int(folder.server.port))
        relay.cut(.fromClient, inAllAfter: 2 << 20)
        let queue = try await openQueue(interop, folder, port: relay.port)
        let events = queue.events
        let content = Data.nonRepeating(5_000_000)
        // The stream's buffer drops bytes once the server has confirmed them, so the upload can only resume after the confirmed bytes.
        let (stream, writer) = TransferItem.stream(as: try RemotePath("stream.bin"), ahead: 400_000)
        let session = try await queue.enqueue(try .upload(items: [stream], to: "real"))
        try await queue.start()
        for start in stride(from: 0, to: content.count, by: 70_000) {
            try await writer.write(content[start..<min(start + 70_000, content.count)])
        }
        writer.finish()
        #expect(try await session.value.statistics.bytesDone == content.count)
        let failure = await events.first { if case .attemptFailed(_, let error, _) = $0 { error } else { nil } }
        #expect(failure?.code == .connectionLost)
        #expect(try Data(contentsOf: folder.files.appending(path: "stream.bin")) == content)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path) == ["stream.bin"])
        await queue.shutdown()
        relay.stop()
        await folder.close()
    }

    /// The part file stays on the server, so the upload resumes. If the client sent the whole file again, the relay would break the connection.
    @Test func cancelledSessionResumesWhenRetried() async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let relay = try CuttingRelay(to: Int(folder.server.port))
        let queue = try await openQueue(interop, folder, port: relay.port)
        let (size, sent) = (12 << 20, 2 << 20)
        let file = try interop.file("large", size: size)
        let session = try await queue.enqueue(.upload([file], to: "real", options: SessionOptions(rateLimit: 512 << 10)))
        try await queue.start()
        await session.waitUntilSent(Int64(sent))
        try await session.cancel()
        await queue.waitUntilIdle()
        #expect(try await session.status.state == .cancelled)
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.files.path)
        #expect(names.count == 1 && names != ["large"], "\(names)")
        let events = queue.events
        relay.cut(.fromClient, inAllAfter: size - sent / 2)
        try await queue.update(session.id, SessionUpdate(rateLimit: .unlimited))
        try await session.retry()
        #expect(try await session.value.state == .completed)
        #expect(try Data(contentsOf: folder.files.appending(path: "large")) == interop.content(file))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path) == ["large"])
        await queue.shutdown()
        // The relay broke no connection, so the client has not sent the whole file again.
        for await event in events {
            switch event.kind {
            case .attemptFailed, .itemRestarted: Issue.record("\(event.kind)")
            default: break
            }
        }
        relay.stop()
        await folder.close()
    }

    /// The session completes although an existing file of a different size is kept.
    @Test(arguments: [OverwritePolicy.skip, .newer]) func completesIfExistingFileIsKept(policy: OverwritePolicy) async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let queue = try await openQueue(interop, folder)
        try await queue.start()
        let paths = try ["one", "two"].map { try interop.file($0, size: 5_000) }
        try Data("old".utf8).write(to: folder.files.appending(path: "one"))
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 4_000_000_000)], ofItemAtPath: folder.files.appending(path: "one").path)
        let session = try await queue.enqueue(
            .upload(paths, to: "real", options: SessionOptions(retry: RetryPolicy(maximumAttempts: 1), overwrite: policy)))
        #expect(try await session.value.statistics.filesDone == 2)
        #expect(try Data(contentsOf: folder.files.appending(path: "one")) == Data("old".utf8))
        #expect(try Data(contentsOf: folder.files.appending(path: "two")).count == 5_000)
        await queue.shutdown()
        await folder.close()
    }

    /// The transport can't verify the checksum of a stream, so the session fails before it sends any byte.
    @Test func rejectsChecksumOfStreamBeforeFirstByte() async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        let queue = try await openQueue(interop, folder)
        try await queue.start()
        let (stream, writer) = TransferItem.stream(as: try RemotePath("stream.bin"))
        try await writer.write(Data("abc".utf8))
        writer.finish()
        let session = try await queue.enqueue(
            .upload(items: [stream], to: "real", options: SessionOptions(verification: .checksum)))
        let error = await #expect(throws: TransferError.self) { try await session.value }
        #expect(error?.failureClass == .unsupported, "\(error?.description ?? "")")
        #expect(error?.message.contains("checksums of streams") == true, "\(error?.description ?? "")")
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.files.path) == [])
        await queue.shutdown()
        await folder.close()
    }

    @Test(arguments: [
        ("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", true), (String(repeating: "0", count: 64), false),
    ])
    func comparesExpectedChecksum(digits: String, isRight: Bool) async throws {
        let interop = try InteropFixture()
        let folder = try await SFTPServerFolder()
        try Data("abc".utf8).write(to: folder.files.appending(path: "file"))
        let queue = try await openQueue(interop, folder)
        try await queue.start()
        let session = try await queue.enqueue(
            .download(
                items: [.remote(RemotePath("file"))], from: "real", to: FilePath(folder.local.path),
                options: SessionOptions(retry: RetryPolicy(maximumAttempts: 1), expectedChecksum: "sha256:\(digits)")))
        if isRight {
            _ = try await session.value
        } else {
            let error = await #expect(throws: TransferError.self) { try await session.value }
            #expect(error?.code == .checksumMismatch, "\(error?.description ?? "")")
        }
        // Ignores the part file that a mismatch leaves, because the queue removes it later.
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.local.path).filter { !$0.hasSuffix(".part") }
        #expect(names == (isRight ? ["file"] : []))
        await queue.shutdown()
        await folder.close()
    }
}
