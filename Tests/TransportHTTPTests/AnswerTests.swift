import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

/// What each answer means, and where redirects lead.
@Suite struct AnswerTests {
    @Test(arguments: [
        (301, FailureClass.permanent, TransferError.Code.rejected), (304, .permanent, .rejected), (400, .permanent, .rejected),
        (401, .credentials, .credentialsRejected), (403, .permanent, .forbidden), (404, .unreachable, .notThisProtocol),
        (405, .unreachable, .notThisProtocol), (408, .transient, .serverError), (409, .permanent, .rejected),
        (410, .unreachable, .notThisProtocol), (411, .permanent, .rejected), (412, .permanent, .rejected), (413, .permanent, .tooLarge),
        (415, .permanent, .rejected), (422, .permanent, .rejected), (423, .transient, .serverError), (429, .transient, .serverError),
        (500, .transient, .serverError), (501, .unreachable, .notThisProtocol), (502, .transient, .serverError),
        (503, .transient, .serverError), (507, .remoteFull, .remoteFull),
    ])
    func anUploadIsRefused(status: Int, failureClass: FailureClass, code: TransferError.Code) async throws {
        let transfer = try TestTransfer("put", size: 10, answers: [[.answer(status, ["Retry-After": "7"], body: "Because.\nMore.")]])
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == failureClass)
        #expect(failure.code == code)
        #expect(failure.cause == "PUT was answered with \(status)" + (status == 304 ? "" : ": Because."))
        #expect(failure.retryAfter == (status == 429 || status == 503 ? .seconds(7) : nil))
        await transfer.end()
    }

    @Test(arguments: [
        (302, FailureClass.permanent, TransferError.Code.rejected), (401, .credentials, .credentialsRejected),
        (403, .permanent, .forbidden), (404, .permanent, .noSuchRemoteFile), (405, .unsupported, .unsupported),
        (410, .permanent, .noSuchRemoteFile), (429, .transient, .serverError), (500, .transient, .serverError),
    ])
    func aDownloadIsRefused(status: Int, failureClass: FailureClass, code: TransferError.Code) async throws {
        let transfer = try TestTransfer("get", answers: [[.answer(status)]])
        let failure = try #require(await transfer.failure())
        #expect(failure.failureClass == failureClass)
        #expect(failure.code == code)
        #expect(transfer.content == nil)
        await transfer.end()
    }

    @Test(arguments: [307, 308]) func anUploadFollowsToTheSameServer(status: Int) async throws {
        let transfer = try TestTransfer(
            "put", size: 100_000, answers: [[.answer(status, ["Location": "/elsewhere?x=1"])], [.answer(201)]])
        let receipt = try await transfer.run()
        #expect(receipt.remoteURL == transfer.server.url("/elsewhere"))
        #expect(transfer.server.requests.map(\.method) == ["PUT", "PUT"])
        #expect(transfer.server.requests.map(\.body.count) == [100_000, 100_000])
        let progress = transfer.recorder.progress.map(\.sent)
        #expect(progress == progress.sorted())
        await transfer.end()
    }

    @Test func anUploadFollowsToOtherServersOnlyIfTheyAreListedAndWithoutCredentials() async throws {
        let other = try ScriptedServer(answers: [[.answer(200)]])
        var transfer = try TestTransfer("form", size: 10) { _, _ in [.answer(307, ["Location": other.url("/x")])] }
        transfer.endpoint.credentials = [.bearer(.environment("TOKEN"))]
        transfer.endpoint.settings = ["header.x-own": "1"]
        transfer.credentials.secrets = ["TOKEN": "hunter2"]
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .permanent)
        #expect(failure?.message.contains("origins") == true)
        #expect(other.requests.isEmpty)
        transfer.endpoint.settings["origins"] = "http://127.0.0.1:\(other.port)"
        _ = try await transfer.run()
        #expect(other.requests.map { $0.headers["authorization"] } == [nil])
        #expect(other.requests.map { $0.headers["x-own"] } == ["1"])
        #expect(transfer.server.requests.last?.headers["authorization"] == "Bearer hunter2")
        other.stop()
        await transfer.end()
    }

    @Test func circlesEnd() async throws {
        let transfer = try TestTransfer("get") { _, _ in [.answer(302, ["Location": "/files/a.bin"])] }
        #expect(await transfer.failure()?.failureClass == .unreachable)
        #expect(transfer.server.requests.count == 6)
        await transfer.end()
    }

    @Test func aDownloadFollows() async throws {
        let transfer = try TestTransfer(
            "get", "/latest?file={name}", answers: [[.answer(302, ["Location": "/7"])], [.answer(200, body: "content")]])
        let receipt = try await transfer.run()
        #expect(transfer.content == "content")
        #expect(transfer.server.requests.map(\.path) == ["/latest?file=a.bin", "/7"])
        #expect(receipt.remoteURL == transfer.server.url("/latest"))
        #expect(receipt.answer == nil)
        await transfer.end()
    }

    @Test func aSecretThatTheServerRepeatsIsNotKept() async throws {
        var transfer = try TestTransfer(
            "put", size: 1, answers: [[.answer(200, body: "token hunter2-horse")], [.answer(400, body: "token hunter2-horse")]])
        transfer.endpoint.credentials = [.bearer(.environment("TOKEN"))]
        transfer.credentials.secrets = ["TOKEN": "hunter2-horse"]
        #expect(try await transfer.run().answer == nil)
        #expect(await transfer.failure()?.description.contains("hunter2") == false)
        await transfer.end()
    }
}
