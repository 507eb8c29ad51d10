import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Connections that break at each byte of requests and responses of the IETF protocol *Resumable Uploads for HTTP*. No byte is lost, and no file
/// arrives twice.
@Suite struct ResourceCutTests {
    private static let size = 100

    /// Runs at most five attempts, until one succeeds.
    ///
    /// - Returns: The number of attempts; 0 if none succeeded, nil if the outcome is unknown.
    private func complete(_ upload: TestUpload, _ context: String) async throws -> Int? {
        for attempt in 1...5 {
            do {
                _ = try await upload.run(from: upload.recorder.checkpoints.last)
                return attempt
            } catch let error as TransferError where error.code == .outcomeUnknown {
                return nil
            } catch let error as TransferError {
                #expect(error.failureClass == .transient, "\(context): \(error)")
            }
        }
        return 0
    }

    /// libcurl reads the whole content of a small file in one read, so the client must assume that the upload may be complete. The server's
    /// state shows that the upload is incomplete.
    @Test(arguments: ["3", "6", "8", "10"]) func recoversFromTruncatedContent(version: String) async throws {
        for position in 0...Self.size {
            let context = "version \(version), POST after \(position) bytes of content"
            let server = ResourceServer(version: version, "POST", .content(position))
            let upload = try TestUpload.resource(size: Self.size, version: version) { request, _ in server.steps(request) }
            #expect(try await complete(upload, context) == 2, "\(context)")
            #expect(upload.methods == ["POST", "HEAD", "PATCH"], "\(context)")
            let content = TemporaryFile.content(size: Self.size)
            #expect(upload.requests.map(\.body) == [Array(content[..<position]), [], Array(content[position...])], "\(context)")
            await upload.end()
        }
    }

    @Test(arguments: ["3", "6", "8", "10"]) func recoversFromTruncatedContentOfPATCH(version: String) async throws {
        for position in 0...Self.size {
            let context = "version \(version), PATCH after \(position) bytes of content"
            let server = ResourceServer(version: version, "PATCH", .content(position))
            var upload = try TestUpload.resource(size: Self.size, version: version) { request, _ in server.steps(request) }
            upload.options.creation = .separate
            _ = try #require(await complete(upload, context), "\(context)")
            let patches = upload.requests.filter { $0.method == "PATCH" }
            #expect(patches.count == 2 && upload.requests.count { $0.method == "POST" } == 1, "\(context)")
            #expect(patches.last?.headers["upload-offset"] == "\(position)", "\(context)")
            #expect(server.state.withLock { $0.isComplete && $0.stored == Self.size }, "\(context)")
            await upload.end()
        }
    }

    /// The server has the whole file. The client requests the state of the upload, and re-sends nothing.
    @Test(arguments: ["3", "6", "8", "10"]) func recoversFromTruncatedFinalResponse(version: String) async throws {
        let whole = ResourceServer(version: version, "", nil).answer(to: "POST", .init(stored: Self.size, isComplete: true))
        for position in 0...whole.utf8.count {
            let context = "version \(version), response after \(position) bytes of \(whole.utf8.count)"
            let server = ResourceServer(version: version, "POST", .answer(position))
            let upload = try TestUpload.resource(size: Self.size, version: version) { request, _ in server.steps(request) }
            let attempts = try #require(await complete(upload, context), "\(context)")
            #expect(upload.methods == (attempts == 1 ? ["POST"] : ["POST", "HEAD"]), "\(context)")
            #expect(position < whole.utf8.count || attempts == 1, "\(context)")
            await upload.end()
        }
    }

    /// As long as the interim response is incomplete, the client does not know the upload's URL. Because the client has sent all content, the
    /// outcome is unknown.
    @Test(arguments: ["3", "6", "8", "10"]) func truncatedInterimResponseLeavesOutcomeUnknown(version: String) async throws {
        let whole = ResourceServer.interim(version)
        for position in 0...whole.utf8.count {
            let context = "version \(version), interim response after \(position) bytes of \(whole.utf8.count)"
            let server = ResourceServer(version: version, "POST", .interim(position))
            let upload = try TestUpload.resource(size: Self.size, version: version) { request, _ in server.steps(request) }
            let attempts = try await complete(upload, context)
            #expect(attempts == (position == whole.utf8.count ? 2 : nil), "\(context)")
            #expect(upload.requests.count { $0.method == "POST" } == 1, "\(context)")
            await upload.end()
        }
    }

    /// If the content of a large file was not sent completely, it is safe to create the upload again.
    @Test func createsLargeFileAgainAfterTruncatedInterimResponse() async throws {
        let whole = ResourceServer.interim("8")
        for position in stride(from: 0, through: whole.utf8.count, by: 7) {
            let server = ResourceServer(version: "8", "POST", .interim(position))
            let upload = try TestUpload.resource(size: 32 << 20) { request, _ in server.steps(request) }
            let attempts = try #require(await complete(upload, "\(position)"))
            #expect(attempts == 2 && server.state.withLock { $0.isComplete }, "\(position)")
            await upload.end()
        }
    }
}
