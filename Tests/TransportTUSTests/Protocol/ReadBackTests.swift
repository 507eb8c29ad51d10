import Crypto
import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Files that the client reads back from the server, because the server verifies no checksums.
@Suite struct ReadBackTests {
    private func upload(size: Int = 10, _ script: @escaping ScriptedServer.Script) throws -> TestUpload {
        var upload = try TestUpload(size: size, offers: "creation,creation-with-upload", script)
        upload.options.verification = .checksum
        return upload
    }

    private static func script(giving content: String, size: Int = 10) -> ScriptedServer.Script {
        let isComplete = Locked(false)
        return { request, _ in
            switch request.method {
            case "POST": return [.created]
            case "HEAD": return [.offset(isComplete.withLock { $0 } ? size : 0)]
            case "GET": return [isComplete.withLock { $0 } ? .answer(200, body: content) : .answer(204)]
            case "DELETE": return [.tus(204)]
            default:
                isComplete.withLock { $0 = true }
                return [.accepted(size)]
            }
        }
    }

    private static func text(_ size: Int) -> String { String(decoding: TemporaryFile.content(size: size), as: UTF8.self) }

    @Test(arguments: [1, 100]) func acceptsIdenticalContent(size: Int) async throws {
        // The first 128 bytes of the content are ASCII.
        let upload = try upload(size: size, Self.script(giving: Self.text(size), size: size))
        let receipt = try await upload.run()
        #expect(upload.methods == ["POST", "GET", "PATCH", "GET"])
        let digest = SHA256.hash(data: TemporaryFile.content(size: size)).map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }
        #expect(receipt.checksum == "sha256:\(digest.joined())")
        #expect(upload.recorder.checkpoints.last?.confirmed == Int64(size))
        #expect(upload.recorder.checkpoints.dropLast().allSatisfy { $0.confirmed < Int64(size) }, "unconfirmed before the comparison")
        #expect(upload.recorder.progress.last?.confirmed == Int64(size))
        await upload.end()
    }

    /// Reading back a large file may take longer than the stall timeout.
    @Test func reportsActivityWhileReadingBack() async throws {
        let upload = try upload(size: 100, Self.script(giving: Self.text(100), size: 100))
        _ = try await upload.run()
        #expect(upload.recorder.activity > 0)
        await upload.end()
    }

    /// If another program created the upload, the client neither creates a test upload nor removes the upload.
    @Test func rejectsGivenUploadWithoutDownload() async throws {
        var upload = try upload { request, _ in request.method == "GET" ? [.answer(405)] : [.offset(0, of: 10)] }
        upload.options.uploadURL = upload.server.url("/files/theirs")
        #expect(await upload.failure()?.failureClass == .unsupported)
        #expect(upload.methods == ["GET"])
        await upload.end()
    }

    @Test(arguments: ["0123456789", "", "012345678901", "01234567"]) func rejectsDifferentContent(content: String) async throws {
        let upload = try upload(Self.script(giving: content))
        let error = await upload.failure()
        #expect(error?.failureClass == .resumeLost)
        #expect(error?.code == .checksumMismatch)
        #expect(upload.methods == ["POST", "GET", "PATCH", "GET", "DELETE"])
        await upload.end()
    }

    /// The server sends more bytes than the file has, and then keeps the connection open without ending the content.
    @Test(.timeLimit(.minutes(1))) func stopsReadingAfterSizeOfFile() async throws {
        let isComplete = Locked(false)
        let script = Self.script(giving: "")
        let upload = try upload { request, number in
            if request.method == "PATCH" { isComplete.withLock { $0 = true } }
            guard request.method == "GET", isComplete.withLock({ $0 }) else { return script(request, number) }
            return [.raw("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n\(Self.text(11))"), .silence]
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .resumeLost)
        #expect(error?.code == .checksumMismatch)
        #expect(upload.methods == ["POST", "GET", "PATCH", "GET", "DELETE"])
        await upload.end()
    }

    @Test(arguments: [403, 405, 410, 501]) func rejectsServerWithoutDownloads(status: Int) async throws {
        let upload = try upload { request, number in
            request.method == "GET" ? [.answer(status)] : Self.script(giving: "")(request, number)
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .unsupported)
        #expect(upload.methods == ["POST", "GET", "DELETE"], "the attempt fails before it sends a byte")
        await upload.end()
    }

    /// Some servers allow downloads only of complete uploads. To test this, the client creates an empty upload, which is immediately
    /// complete.
    @Test(arguments: [true, false]) func testsDownloadWithEmptyUpload(allowsDownload: Bool) async throws {
        let script = Self.script(giving: Self.text(10))
        let isComplete = Locked(false)
        let upload = try upload { request, number in
            if request.method == "POST", request.headers["upload-length"] == "0" { return [.tus(201, ["Location": "/files/empty"])] }
            if request.method == "PATCH" { isComplete.withLock { $0 = true } }
            guard request.method == "GET" else { return script(request, number) }
            if request.path == "/files/empty" { return [.answer(allowsDownload ? 200 : 404)] }
            return isComplete.withLock { $0 } ? script(request, number) : [.answer(404)]
        }
        let error = await upload.failure()
        #expect(error?.failureClass == (allowsDownload ? nil : .unsupported))
        #expect(upload.methods == ["POST", "GET", "POST", "GET", "DELETE"] + (allowsDownload ? ["PATCH", "GET"] : ["DELETE"]))
        await upload.end()
    }

    @Test func retriesBusyServer() async throws {
        let upload = try upload { request, number in
            request.method == "GET" ? [.answer(503, ["Retry-After": "3"])] : Self.script(giving: "")(request, number)
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .transient)
        #expect(error?.retryAfter == .seconds(3))
        #expect(upload.methods == ["POST", "GET"])
        await upload.end()
    }

    @Test func retriesAfterInterruptionWhileReadingBack() async throws {
        let count = Locked(0)
        let script = Self.script(giving: Self.text(10))
        let upload = try upload { request, number in
            let isFirst =
                request.method == "GET"
                && count.withLock { count in
                    count += 1
                    return count == 2
                }
            return isFirst ? [.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"), .close] : script(request, number)
        }
        #expect(await upload.failure()?.failureClass == .transient)
        let receipt = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(receipt.checksum != nil)
        #expect(upload.methods == ["POST", "GET", "PATCH", "GET", "HEAD", "GET"])
        await upload.end()
    }
}
