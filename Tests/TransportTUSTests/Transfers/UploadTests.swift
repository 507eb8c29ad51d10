import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct UploadTests {
    @Test func uploadsFileInTwoRequests() async throws {
        let upload = try TestUpload(size: 300_000, answers: [[.created], [.accepted(300_000)]])
        let receipt = try await upload.run()
        #expect(receipt.bytes == 300_000)
        #expect(receipt.remoteURL == upload.server.url("/files/1"))
        let requests = upload.requests
        #expect(requests.map(\.method) == ["POST", "PATCH"])
        #expect(requests.allSatisfy { $0.headers["tus-resumable"] == "1.0.0" })
        #expect(requests[0].headers["upload-length"] == "300000")
        #expect(requests[0].headers["content-length"] == "0")
        #expect(requests[1].path == "/files/1")
        #expect(requests[1].headers["upload-offset"] == "0")
        #expect(requests[1].headers["content-type"] == "application/offset+octet-stream")
        #expect(requests[1].body == TemporaryFile.content(size: 300_000))
        #expect(upload.server.connectionCount == 1)
        #expect(upload.recorder.checkpoints.map(\.confirmed) == [0, 0, 300_000])
        await upload.end()
    }

    @Test func onlyServerConfirmsProgress() async throws {
        let upload = try TestUpload(size: 300_000, answers: [[.created], [.accepted(300_000)]])
        _ = try await upload.run()
        let progress = upload.recorder.progress
        #expect(progress.dropLast().allSatisfy { $0.confirmed == 0 })
        #expect(progress.map(\.sent) == progress.map(\.sent).sorted())
        #expect(progress.last?.sent == 300_000)
        #expect(progress.last?.confirmed == 300_000)
        await upload.end()
    }

    @Test func storesCheckpointBeforeCreation() async throws {
        let recorder = Locked<Recorder?>(nil)
        let checkpointCounts = Locked<[Int]>([])
        let upload = try TestUpload(size: 1) { request, _ in
            let count = recorder.withLock { $0 }?.checkpoints.count ?? -1
            checkpointCounts.withLock { $0.append(count) }
            return [request.method == "POST" ? .created : .accepted(1)]
        }
        recorder.withLock { $0 = upload.recorder }
        _ = try await upload.run()
        #expect(checkpointCounts.withLock { $0 } == [1, 2])
        await upload.end()
    }

    @Test(
        arguments: [
            ("/up/1", "/up/1"), ("1", "/files/1"), ("../x/1?k=v", "/x/1?k=v"), ("?id=1", "/files/?id=1"), ("//HOST/y", "/y"),
            ("http://HOST/z", "/z"),
        ])
    func resolvesLocations(location: String, path: String) async throws {
        let upload = try TestUpload(size: 1) { request, _ in
            let host = request.headers["host"] ?? ""
            let location = location.replacingOccurrences(of: "HOST", with: host)
            return [request.method == "POST" ? .tus(201, ["Location": location]) : .accepted(1)]
        }
        _ = try await upload.run()
        #expect(upload.requests.last?.path == path)
        await upload.end()
    }

    @Test func emptyFileIsCompleteAfterCreation() async throws {
        let upload = try TestUpload(size: 0, answers: [[.created]])
        #expect(try await upload.run().bytes == 0)
        #expect(upload.methods == ["POST"])
        #expect(upload.requests.first?.headers["upload-length"] == "0")
        await upload.end()
    }

    @Test(arguments: [1, 1000, 299_999]) func resumesAtServerOffset(offset: Int) async throws {
        let upload = try TestUpload(size: 300_000, answers: [[.offset(offset, of: 300_000)], [.accepted(300_000)]])
        _ = try await upload.run(from: upload.checkpoint(confirmed: 1000))
        let requests = upload.requests
        #expect(requests.map(\.method) == ["HEAD", "PATCH"])
        #expect(requests[1].headers["upload-offset"] == "\(offset)")
        #expect(requests[1].body == Array(TemporaryFile.content(size: 300_000)[offset...]))
        await upload.end()
    }

    @Test func sendsNothingForCompleteUpload() async throws {
        let upload = try TestUpload(size: 5, answers: [[.offset(5, of: 5)]])
        #expect(try await upload.run(from: upload.checkpoint()).bytes == 5)
        #expect(upload.methods == ["HEAD"])
        await upload.end()
    }

    @Test func restartsFromCheckpointBeforeCreation() async throws {
        let first = try TestUpload(size: 5, answers: [[.read(nil), .reset]])
        #expect(await first.failure()?.failureClass == .transient)
        let checkpoint = try #require(first.recorder.checkpoints.last)
        await first.end()
        let second = try TestUpload(size: 5, answers: [[.created], [.accepted(5)]])
        _ = try await second.run(from: checkpoint)
        #expect(second.methods == ["POST", "PATCH"])
        await second.end()
    }

    @Test func resendsBytesThatServerDidNotStore() async throws {
        let upload = try TestUpload(size: 10, answers: [[.created], [.accepted(4)], [.offset(4, of: 10)], [.accepted(10)]])
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH"])
        #expect(upload.requests.last?.headers["upload-offset"] == "4")
        #expect(upload.requests.last?.body == Array(TemporaryFile.content(size: 10)[4...]))
        await upload.end()
    }

    @Test func readsOffsetAfterLostLastResponse() async throws {
        let upload = try TestUpload(size: 10, answers: [[.created], [.read(nil), .reset], [.offset(10, of: 10)]])
        #expect(try await upload.run().bytes == 10)
        #expect(upload.methods == ["POST", "PATCH", "HEAD"])
        await upload.end()
    }

    @Test func followsTemporaryRedirect() async throws {
        let upload = try TestUpload(size: 1) { request, number in
            switch number {
            case 0: [.answer(307, ["Location": "/moved/"])]
            case 1: [.created]
            default: [.accepted(1)]
            }
        }
        _ = try await upload.run()
        #expect(upload.requests.map(\.path) == ["/files/", "/moved/", "/files/1"])
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        await upload.end()
    }
}
