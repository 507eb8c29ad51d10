import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// When and how often the client requests the server's features.
@Suite struct FeatureTests {
    private static let upload: ScriptedServer.Script = { request, _ in [request.method == "POST" ? .created : .accepted(10)] }

    @Test func requestsFeaturesOnceADay() async throws {
        let start = ContinuousClock.now
        let now = Locked(start)
        let upload = try TestUpload(size: 10, offers: "creation", now: { now.withLock { $0 } }, Self.upload)
        _ = try await upload.run()
        _ = try await upload.run()
        now.withLock { $0 = start + .seconds(86_399) }
        _ = try await upload.run()
        #expect(upload.featureRequests == 1)
        now.withLock { $0 = start + .seconds(86_401) }
        _ = try await upload.run()
        #expect(upload.featureRequests == 2)
        await upload.end()
    }

    /// If the client assumed that the server lacks checksums, the file could fail although the server supports them.
    @Test(arguments: [500, 401]) func doesNotGuessChecksumSupport(status: Int) async throws {
        var upload = try TestUpload(size: 10, options: [.answer(status)], Self.upload)
        upload.options.verification = .checksum
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.methods == [])
        await upload.end()
    }

    @Test func concurrentFilesShareOneRequest() async throws {
        let upload = try TestUpload(size: 10, offers: "creation", Self.upload)
        try await withThrowingTaskGroup { group in
            for _ in 0..<10 { group.addTask { try await upload.run() } }
            try await group.waitForAll()
        }
        #expect(upload.featureRequests == 1)
        #expect(upload.methods.count { $0 == "POST" } == 10)
        await upload.end()
    }

    @Test func resumedUploadRequestsNoFeatures() async throws {
        let upload = try TestUpload(size: 10, offers: "creation", answers: [[.offset(0)], [.accepted(10)]])
        _ = try await upload.run(from: upload.checkpoint())
        #expect(upload.featureRequests == 0)
        await upload.end()
    }

    @Test(arguments: [404, 405, 302, 501]) func assumesCoreAndCreationIfFeatureRequestIsRejected(status: Int) async throws {
        let upload = try TestUpload(
            size: 10, options: [.answer(status, ["Tus-Extension": "creation-with-upload"])], Self.upload)
        _ = try await upload.run()
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH", "POST", "PATCH"])
        #expect(upload.featureRequests == 1)
        await upload.end()
    }

    /// These statuses describe a temporary problem, or a problem of this client. They do not describe the features of the server.
    @Test(arguments: [500, 401, 403, 408, 423]) func doesNotRememberTransientFailures(status: Int) async throws {
        let upload = try TestUpload(size: 10, options: [.answer(status)], Self.upload)
        _ = try await upload.run()
        _ = try await upload.run()
        #expect(upload.featureRequests == 2)
        await upload.end()
    }

    @Test func sendsNothingElseToBusyServer() async throws {
        for status in [429, 503] {
            let upload = try TestUpload(size: 10, options: [.answer(status, ["Retry-After": "9"])], Self.upload)
            let error = await upload.failure()
            #expect(error?.failureClass == .transient)
            #expect(error?.retryAfter == .seconds(9))
            #expect(upload.methods.isEmpty)
            await upload.end()
        }
    }

    @Test func reportsOtherVersionBeforeCreation() async throws {
        for response in [ServerStep.answer(204, ["Tus-Version": "0.2.2,2.0.0"]), .answer(412, ["Tus-Version": "0.2.2,2.0.0"])] {
            let upload = try TestUpload(size: 10, options: [response], Self.upload)
            let error = await upload.failure()
            #expect(error?.failureClass == .permanent)
            #expect(error?.code == .unsupportedVersion)
            #expect(error?.message.contains("0.2.2") == true)
            #expect(error?.message.contains("1.0.0") == true)
            #expect(upload.methods.isEmpty)
            await upload.end()
        }
    }

    @Test func stopsRequestingFeaturesAfterFailures() async throws {
        let upload = try TestUpload(size: 10, options: [.close], Self.upload)
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(await upload.failure()?.failureClass == .transient)
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }

    @Test func cancellationDoesNotWaitForResponse() async throws {
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let upload = try TestUpload(size: 10, options: [.call { arrival.finish() }, .silence], Self.upload)
        let task = Task { try await upload.run() }
        for await _ in arrived {}
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(upload.methods.isEmpty)
        await upload.end()
    }

    @Test func ignoresUnknownExtensions() async throws {
        let upload = try TestUpload(size: 10, offers: "creation,teleportation, creation-with-upload-2,", Self.upload)
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }

    @Test func rejectsTooLargeFile() async throws {
        let upload = try TestUpload(size: 11, offers: "creation", features: ["Tus-Max-Size": "10"], Self.upload)
        let error = await upload.failure()
        #expect(error?.failureClass == .unsupported)
        #expect(error?.code == .tooLarge)
        #expect(error?.message.contains("up to 10 bytes; this file has 11") == true)
        #expect(upload.methods.isEmpty)
        await upload.end()
    }

    @Test(arguments: ["10", "", "many", "-1"]) func ignoresInvalidOrSufficientMaximumSize(maximum: String) async throws {
        let upload = try TestUpload(size: 10, offers: "creation", features: ["Tus-Max-Size": maximum], Self.upload)
        _ = try await upload.run()
        await upload.end()
    }

    /// The server lists an extension that it does not support.
    @Test func settingExcludesExtension() async throws {
        var upload = try TestUpload(size: 10, offers: "creation,creation-with-upload,termination", Self.upload)
        upload.endpoint.settings["extensions"] = "creation"
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH"])
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.discard(upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        }
        #expect(error?.failureClass == .unsupported)
        #expect(!upload.methods.contains("DELETE"))
        await upload.end()
    }

    /// The server supports extensions that it does not list.
    @Test(arguments: [404, 500]) func settingAddsExtensions(status: Int) async throws {
        var upload = try TestUpload(size: 10, options: [.answer(status)]) { request, _ in
            request.contentLength == 0
                ? [.created] : request.method == "POST" ? [.tus(201, ["Location": "/1", "Upload-Offset": "10"])] : [.accepted(10)]
        }
        upload.endpoint.settings["extensions"] = "creation-with-upload,checksum"
        _ = try await upload.run()
        #expect(upload.methods == ["POST"])
        // Each server with this extension supports SHA-1.
        upload.options.verification = .checksum
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        #expect(upload.requests.last?.headers["upload-checksum"]?.hasPrefix("sha1 ") == true)
        await upload.end()
    }
}
