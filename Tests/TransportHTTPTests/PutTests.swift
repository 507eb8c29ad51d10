import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

/// Files that are sent as the content of PUT and POST requests.
@Suite struct PutTests {
    @Test func sendsFileAsBody() async throws {
        var transfer = try TestTransfer("put", size: 100_000, answers: [[.answer(201, ["Content-Type": "text/plain"], body: "stored")]])
        transfer.remotePath = "reels/day 1/a.MOV"
        let receipt = try await transfer.run()
        let request = try #require(transfer.server.requests.first)
        #expect(request.method == "PUT")
        #expect(request.path == "/files/reels/day%201/a.MOV")
        #expect(request.headers["content-length"] == "100000")
        #expect(request.headers["content-type"] == "video/quicktime")
        #expect(request.headers["expect"] == nil)
        #expect(request.body == TemporaryFile.content(size: 100_000))
        #expect(receipt.bytes == 100_000)
        #expect(receipt.remoteURL == transfer.server.url("/files/reels/day%201/a.MOV"))
        #expect(receipt.serverResponse == ServerResponse(status: 201, mediaType: "text/plain", text: "stored"))
        #expect(transfer.recorder.checkpoints.isEmpty)
        #expect(transfer.recorder.progress.last.map { [$0.sent, $0.confirmed] } == [100_000, 100_000])
        #expect(transfer.recorder.progress.dropLast().allSatisfy { $0.confirmed == 0 })
        await transfer.end()
    }

    /// A POST goes to the address itself. The server's `Location` is the URL of the file.
    @Test func postsFileAsBody() async throws {
        let response = ServerStep.answer(303, ["Location": "/media/7?sig=1", "Content-Type": "application/json"], body: "{}")
        var transfer = try TestTransfer("post", "/media?x=1", size: 100_000, answers: [[response]])
        transfer.remotePath = "reels/a.mov"
        let receipt = try await transfer.run()
        let request = try #require(transfer.server.requests.first)
        #expect(request.method == "POST" && request.path == "/media?x=1" && request.headers["content-type"] == "video/quicktime")
        #expect(request.body == TemporaryFile.content(size: 100_000))
        #expect(receipt.remoteURL == transfer.server.url("/media/7"))
        #expect(receipt.serverResponse == ServerResponse(status: 303, mediaType: "application/json", text: "{}"))
        await transfer.end()
    }

    @Test(arguments: [
        ("/files", "/files/d/%7Bname%7D%20%C3%A9"), ("", "/d/%7Bname%7D%20%C3%A9"), ("/x?sig=a%2Fb", "/x/d/%7Bname%7D%20%C3%A9?sig=a%2Fb"),
        ("/in/{path}?sig=1", "/in/d/%7Bname%7D%20%C3%A9?sig=1"), ("/in/{transfer}/{name}", "/in/t-1/%7Bname%7D%20%C3%A9"),
        ("/in?key={path}&id={transfer}", "/in?key=d/%7Bname%7D%20%C3%A9&id=t-1"),
        ("/{path}/%7Bother%7D", "/d/%7Bname%7D%20%C3%A9/%7Bother%7D"),
    ])
    func replacesPlaceholdersInAddress(address: String, path: String) async throws {
        var transfer = try TestTransfer("put", address, size: 1, answers: [[.answer(200)]])
        transfer.remotePath = "d/{name} é"
        _ = try await transfer.run()
        #expect(transfer.server.requests.map(\.path) == [path])
        await transfer.end()
    }

    /// If the transport accepted such names, the file `b/x` would replace `a/x` on the server.
    @Test func addressWithNameRejectsFilesInFolders() async throws {
        var transfer = try TestTransfer("put", "/in/{name}", size: 1, answers: [[.answer(200)]])
        transfer.remotePath = "a/x"
        let error = await #expect(throws: TransferError.self) { try await transfer.run() }
        #expect(error?.failureClass == .unsupported && error?.message.contains("{path}") == true)
        #expect(transfer.server.requests.isEmpty)
        transfer.remotePath = "x"
        _ = try await transfer.run()
        #expect(transfer.server.requests.map(\.path) == ["/in/x"])
        await transfer.end()
    }

    @Test func signedURLReplacesAddress() async throws {
        var transfer = try TestTransfer("put", size: 10, answers: [[.answer(200)]])
        let other = try ScriptedServer(answers: [[.answer(200, body: "seen: 0123456789abcdef")]])
        transfer.options.uploadURL = other.url("/bucket/key?signature=0123456789abcdef")
        transfer.options.headers = ["x-amz-acl": "private", "Content-Type": "text/x-own"]
        transfer.endpoint.credentials = [.bearer(.environment("TOKEN"))]
        transfer.endpoint.settings = ["header.x-own": "1"]
        transfer.credentials.secrets = ["TOKEN": "hunter2"]
        let receipt = try await transfer.run()
        let request = try #require(other.requests.first)
        #expect(request.path == "/bucket/key?signature=0123456789abcdef")
        #expect(request.headers["authorization"] == nil, "the URL has another origin")
        #expect(request.headers["x-amz-acl"] == nil && request.headers["x-own"] == nil)
        #expect(request.headers["content-type"] == "text/x-own")
        #expect(receipt.remoteURL == other.url("/bucket/key"))
        #expect(receipt.serverResponse?.text.contains("0123456789abcdef") == false, "the response repeats the signature")
        #expect(transfer.server.requests.isEmpty)
        other.stop()
        await transfer.end()
    }

    @Test func expiredSignedURLFailsOnlyItsFile() async throws {
        var transfer = try TestTransfer("put", size: 10, answers: [[.answer(403)], [.answer(404)], [.answer(401)]])
        transfer.options.uploadURL = transfer.server.url("/key?signature=x")
        let expired = await transfer.failure()
        #expect(expired?.failureClass == .permanent)
        #expect(expired?.code == .forbidden)
        let gone = await transfer.failure()
        #expect(gone?.failureClass == .permanent)
        #expect(gone?.code == .rejected)
        #expect(await transfer.failure()?.failureClass == .permanent)
        #expect(expired?.description.contains("signature=") == false)
        await transfer.end()
    }

    @Test func sendsMetadataAsHeadersIfConfigured() async throws {
        var transfer = try TestTransfer("put", size: 1, answers: [[.answer(200)]])
        transfer.options.metadata = ["reel": "A 7"]
        let refused = await transfer.failure()
        #expect(refused?.failureClass == .unsupported)
        #expect(transfer.server.requests.isEmpty)
        transfer.endpoint.settings = ["metadataPrefix": "x-amz-meta-"]
        _ = try await transfer.run()
        #expect(transfer.server.requests.first?.headers["x-amz-meta-reel"] == "A 7")
        await transfer.end()
    }

    @Test func sendsCredentialsToEndpoint() async throws {
        var transfer = try TestTransfer("put", size: 1, answers: [[.answer(401)], [.answer(200)], [.answer(403)]])
        transfer.endpoint.address = "http+put://anna@127.0.0.1:\(transfer.server.port)/files/"
        transfer.endpoint.credentials = [.password(.environment("P"))]
        transfer.credentials.secrets = ["P": "hunter2"]
        #expect(await transfer.failure()?.failureClass == .credentials)
        let receipt = try await transfer.run()
        #expect(receipt.remoteURL == transfer.server.url("/files/a.bin"))
        #expect(await transfer.failure()?.failureClass == .permanent, "the credentials were accepted before")
        let basic = "Basic " + Data("anna:hunter2".utf8).base64EncodedString()
        #expect(transfer.server.requests.map { $0.headers["authorization"] } == [basic, basic, basic])
        await transfer.end()
    }

    @Test func rejectsUnsupportedOptionsBeforeFirstByte() async throws {
        var transfer = try TestTransfer("get", size: 1, answers: [])
        #expect(await transfer.failure()?.failureClass == .unsupported)
        transfer.endpoint = .http("http+put://127.0.0.1:\(transfer.server.port)/")
        transfer.options.expectedChecksum = "md5:00000000000000000000000000000000"
        #expect(await transfer.failure()?.failureClass == .unsupported)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }
}
