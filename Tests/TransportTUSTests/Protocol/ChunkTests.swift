import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct ChunkTests {
    /// The script of a server that stores all content, and rejects requests with more than `limit` bytes.
    private static func storing(limit: Int = .max) -> ScriptedServer.Script {
        let stored = Locked(0)
        return { request, _ in
            switch request.method {
            case "POST": return [.created]
            case "HEAD": return [.offset(stored.withLock { $0 })]
            default:
                if request.contentLength > limit { return [.answer(413, ["Connection": "close"]), .close] }
                let offset = stored.withLock { stored in
                    stored += request.contentLength
                    return stored
                }
                return [.accepted(offset)]
            }
        }
    }

    private func sizes(_ upload: TestUpload) -> [Int] {
        upload.requests.filter { $0.method == "PATCH" }.map(\.contentLength)
    }

    @Test(arguments: [
        (["chunkSize": "400"], [400, 400, 200]), (["chunkSize": "1000"], [1000]), (["chunkSize": "5000"], [1000]),
        (["chunkSize": "450", "chunkMultiple": "100"], [400, 400, 200]),
        (["chunkMultiple": "300"], [1000]),
    ])
    func appliesSettings(settings: [String: String], expected: [Int]) async throws {
        var upload = try TestUpload(size: 1000, Self.storing())
        upload.endpoint.settings = settings
        _ = try await upload.run()
        #expect(sizes(upload) == expected)
        #expect(!upload.methods.contains("HEAD"))
        #expect(upload.requests.flatMap(\.body) == TemporaryFile.content(size: 1000))
        #expect(upload.server.connectionCount == 1)
        await upload.end()
    }

    @Test func sessionOptionsOverrideSettings() async throws {
        var upload = try TestUpload(size: 1000, offers: "creation,creation-with-upload", Self.storing())
        upload.endpoint.settings = ["chunkSize": "100"]
        upload.options.chunkSize = 600
        _ = try await upload.run()
        #expect(sizes(upload) == [600, 400])
        #expect(upload.recorder.checkpoints.map(\.confirmed) == [0, 0, 600, 1000])
        await upload.end()
    }

    @Test(arguments: [
        ("chunkSize", "0"), ("chunkSize", "x"), ("chunkMultiple", "-1"), ("singleRequestSize", "-1"), ("methodOverride", "1"),
    ])
    func rejectsInvalidValues(key: String, value: String) async throws {
        var upload = try TestUpload(size: 10, answers: [])
        upload.endpoint.settings[key] = value
        let error = await upload.failure()
        #expect(error?.code == .invalidEndpoint)
        #expect(error?.message.contains(key) == true)
        await upload.end()
    }

    /// No chunk size can satisfy both settings.
    @Test func rejectsChunkSizeBelowMultiple() throws {
        let settings = ["chunkSize": "262143", "chunkMultiple": "262144"]
        let error = #expect(throws: TransferError.self) {
            try TUSTransport.validate(Endpoint(transport: .tus, address: "https://host/", settings: settings))
        }
        #expect(error?.code == .invalidEndpoint && error?.message.contains("chunkMultiple") == true)
        let (transport, options) = (TUSTransport(), AttemptOptions(chunkSize: 262_143))
        let endpoint = Endpoint(transport: .tus, address: "https://host/", settings: ["chunkMultiple": "262144"])
        let refused = #expect(throws: TransferError.self) { try transport.validate(options, for: .upload, at: endpoint) }
        #expect(refused?.failureClass == .unsupported, "another endpoint of the account may support the options")
        try transport.validate(AttemptOptions(chunkSize: 262_144), for: .upload, at: endpoint)
        try transport.validate(options, for: .download, at: endpoint)
    }

    @Test func sendsSmallerRequestsAfter413() async throws {
        let size = 3_000_000
        let upload = try TestUpload(size: size, Self.storing(limit: 800_000))
        _ = try await upload.run()
        let patches = sizes(upload)
        #expect(patches == [size, size / 2, 750_000, 750_000, 750_000, 750_000])
        #expect(upload.methods.filter { $0 == "HEAD" }.count == 2)
        #expect(upload.requests.filter { $0.contentLength <= 800_000 }.flatMap(\.body) == TemporaryFile.content(size: size))
        await upload.end()
    }

    /// A server that closes the connection while it receives content may have sent a response, which is lost with the connection (RFC 9112,
    /// section 9.6).
    @Test func sendsExpectContinueAfterLostResponse() async throws {
        let size = 32_000_000
        let storing = Self.storing()
        let upload = try TestUpload(size: size) { request, number in
            guard request.method == "PATCH", request.contentLength > size / 2 else { return storing(request, number) }
            // `.read(1)`: the byte may be stored but not counted, so the client checks the size with a `GET` at the end.
            return request.headers["expect"] == nil ? [.read(1), .reset] : [.answer(413, ["Connection": "close"]), .close]
        }
        _ = try await upload.run()
        #expect(sizes(upload) == [size, size, size / 2, size / 2])
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH", "PATCH", "GET"])
        await upload.end()
    }

    /// The server ignores `X-HTTP-Method-Override`, and creates another upload.
    @Test func reportsIgnoredOverride() async throws {
        let upload = try TestUpload(size: 10) { request, _ in
            switch request.method {
            case "POST" where request.headers["x-http-method-override"] == nil: [.created]
            case "POST": [.tus(201, ["Location": "/files/2", "Upload-Offset": "10"])]
            case "HEAD": [.offset(0)]
            default: [.answer(405)]
            }
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent && error?.message.contains("another upload") == true, "\(error?.description ?? "")")
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "POST", "HEAD"])
        await upload.end()
    }

    /// Status 413 concerns one request, not the whole file. The client must still try smaller requests, even if it can't read the offset
    /// after the rejection.
    @Test(arguments: [[ServerStep.answer(502)], [.close]]) func remembersRequestLimitWhileOffsetIsUnknown(fault: [ServerStep])
        async throws
    {
        let upload = try TestUpload(size: 600_000) { request, number in
            switch request.method {
            case "POST": [.created]
            case "HEAD": number == 2 || number == 3 ? fault : [.offset(0)]
            case _ where request.contentLength > 400_000: [.answer(413)]
            default: [.accepted(Int(request.headers["upload-offset"] ?? "").map { $0 + request.contentLength } ?? 0)]
            }
        }
        var attempts = 1
        while let failure = await upload.failure(from: upload.recorder.checkpoints.last) {
            #expect(failure.failureClass == .transient, "\(failure)")
            attempts += 1
            try #require(attempts < 5)
        }
        #expect(sizes(upload).suffix(2) == [300_000, 300_000])
        await upload.end()
    }

    @Test func remembersAcceptedSize() async throws {
        let upload = try TestUpload(size: 600_000) { request, _ in
            switch request.method {
            case "POST": [.created]
            case "HEAD": [.offset(0)]
            case _ where request.contentLength > 400_000: [.answer(413)]
            default: [.accepted(Int(request.headers["upload-offset"] ?? "").map { $0 + request.contentLength } ?? 0)]
            }
        }
        _ = try await upload.run()
        #expect(sizes(upload) == [600_000, 300_000, 300_000])
        _ = try await upload.run()
        #expect(sizes(upload).suffix(2) == [300_000, 300_000])
        #expect(upload.methods.filter { $0 == "HEAD" }.count == 1)
        await upload.end()
    }

    @Test func doesNotRepeatTooLargeCreation() async throws {
        let size = 600_000
        let upload = try TestUpload(size: size, offers: "creation,creation-with-upload") { request, _ in
            switch request.method {
            case _ where request.contentLength > 400_000: [.answer(413)]
            case "POST": [.created]
            case "HEAD": [.offset(0)]
            default: [.accepted(Int(request.headers["upload-offset"] ?? "").map { $0 + request.contentLength } ?? 0)]
            }
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "POST", "PATCH", "PATCH"])
        #expect(sizes(upload) == [300_000, 300_000])
        _ = try await upload.run()
        #expect(upload.methods.suffix(3) == ["POST", "PATCH", "PATCH"])
        #expect(upload.requests.last { $0.method == "POST" }?.contentLength == 0)
        await upload.end()
    }

    @Test func failsIfServerAcceptsNothing() async throws {
        let upload = try TestUpload(size: 2_000_000, Self.storing(limit: 0))
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.code == .tooLarge)
        #expect(sizes(upload) == [2_000_000, 1_000_000, 500_000, 262_144])
        await upload.end()
    }

    /// A proxy forwards only complete requests, or the server stores only complete requests.
    @Test func sendsSmallerRequestsThroughBufferingProxy() async throws {
        let size = 4_000_000
        let upload = try TestUpload(size: size) { request, number in
            switch request.method {
            case "POST": [.created]
            case "HEAD": [.offset(0)]
            case _ where request.contentLength == size: [.read(nil), .reset]
            default: [.accepted(Int(request.headers["upload-offset"] ?? "").map { $0 + request.contentLength } ?? 0)]
            }
        }
        #expect(await upload.failure()?.failureClass == .transient)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        let patches = sizes(upload)
        #expect(patches[0] == size)
        #expect(patches.dropFirst().allSatisfy { $0 <= size / 2 })
        #expect(patches.dropFirst().reduce(0, +) == size)
        await upload.end()
    }

    @Test func keepsRequestSizeAfterInterruptionWithProgress() async throws {
        let upload = try TestUpload(size: 4_000_000) { request, number in
            switch number {
            case 0: [.created]
            case 1: [.read(3_000_000), .reset]
            case 2, 3: [.offset(1)]
            default: [.accepted(4_000_000)]
            }
        }
        _ = await upload.failure()
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(sizes(upload) == [4_000_000, 3_999_999])
        await upload.end()
    }
}
