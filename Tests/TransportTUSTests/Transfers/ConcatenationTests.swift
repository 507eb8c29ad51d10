import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Files that are sent as parallel segments (extension *concatenation*).
@Suite struct ConcatenationTests {
    /// A server that concatenates segments.
    final class Server: Sendable {
        struct Upload {
            var length: Int
            var content: [UInt8] = []
            var segments: [String]?
        }

        struct State {
            var uploads: [String: Upload] = [:]
            var finals: [String] = []
            var created = 0
            /// Functions that return a response in place of the normal response, or nil. Each function returns a response only once.
            var faults: [@Sendable (ReceivedRequest) -> [ServerStep]?] = []
        }

        let state = Locked(State())

        init(fault: (@Sendable (ReceivedRequest) -> [ServerStep]?)? = nil) {
            if let fault { state.withLock { $0.faults = [fault] } }
        }

        func answer(_ request: ReceivedRequest) -> [ServerStep] {
            state.withLock { state in
                for (index, fault) in state.faults.enumerated() {
                    guard let steps = fault(request) else { continue }
                    state.faults.remove(at: index)
                    return steps
                }
                switch request.method {
                case "POST": return create(request, &state)
                case "HEAD": return [head(request.path, state)]
                case "DELETE": return [state.uploads.removeValue(forKey: request.path) == nil ? .tus(404) : .tus(204)]
                default: return patch(request)
                }
            }
        }

        private func create(_ request: ReceivedRequest, _ state: inout State) -> [ServerStep] {
            state.created += 1
            let path = "/files/\(state.created)"
            let concat = request.headers["upload-concat"] ?? ""
            if concat.hasPrefix("final;") {
                state.finals.append(concat)
                state.uploads[path] = Upload(length: -1, segments: concat.dropFirst(6).split(separator: " ").map(String.init))
            } else {
                state.uploads[path] = Upload(length: Int(request.headers["upload-length"] ?? "") ?? -1)
            }
            return [.tus(201, ["Location": path])]
        }

        private func head(_ path: String, _ state: State) -> ServerStep {
            guard let upload = state.uploads[path] else { return .tus(404) }
            guard let segments = upload.segments else { return .offset(upload.content.count, of: upload.length) }
            let found = segments.compactMap { state.uploads[$0] }
            guard found.count == segments.count else { return .tus(200) }
            let isComplete = found.allSatisfy { $0.content.count == $0.length }
            let length = found.map(\.length).reduce(0, +)
            return isComplete ? .offset(length, of: length) : .tus(200, ["Upload-Length": "\(length)"])
        }

        private func patch(_ request: ReceivedRequest) -> [ServerStep] {
            let offset = Int(request.headers["upload-offset"] ?? "") ?? 0
            let end = offset + request.contentLength
            return [
                .read(nil),
                .call { self.state.withLock { $0.uploads[request.path]?.content += [UInt8](repeating: 0, count: request.contentLength) } },
                .accepted(end),
            ]
        }
    }

    private func upload(
        size: Int = 1000, segmentCount: Int = 3, offers: String = "creation,creation-with-upload,concatenation", server: Server
    ) throws -> TestUpload {
        var upload = try TestUpload(size: size, offers: offers) { request, _ in server.answer(request) }
        upload.endpoint.settings["parallelThreshold"] = "100"
        upload.options.segmentsPerFile = segmentCount
        return upload
    }

    /// The content that a server would concatenate from the received requests.
    private func content(_ upload: TestUpload) throws -> [UInt8] {
        let final = try #require(upload.requests.last { $0.headers["upload-concat"]?.hasPrefix("final;") == true })
        let segments = try #require(final.headers["upload-concat"]).dropFirst("final;".count).split(separator: " ").map(String.init)
        return segments.flatMap { segment in
            upload.requests.filter { $0.method == "PATCH" && $0.path == segment && $0.body.count == $0.contentLength }.flatMap(\.body)
        }
    }

    @Test(arguments: [(1000, 3, [334, 334, 332]), (1000, 2, [500, 500]), (101, 64, Array(repeating: 2, count: 50) + [1])])
    func sendsFileAsSegments(size: Int, segmentCount: Int, lengths: [Int]) async throws {
        let server = Server()
        let upload = try upload(size: size, segmentCount: segmentCount, server: server)
        let receipt = try await upload.run()
        #expect(receipt.bytes == Int64(size))
        #expect(receipt.warnings.isEmpty)
        let partial = upload.requests.filter { $0.headers["upload-concat"] == "partial" }
        #expect(partial.compactMap { $0.headers["upload-length"].flatMap { Int($0) } }.sorted() == lengths.sorted())
        let final = upload.requests.filter { $0.headers["upload-concat"]?.hasPrefix("final;") == true }
        #expect(final.count == 1)
        #expect(final.first?.headers["upload-length"] == nil)
        #expect(final.first?.headers["upload-concat"]?.contains("http") == false, "the URLs of the segments are relative")
        #expect(try content(upload) == TemporaryFile.content(size: size))
        // Each segment needs one POST, one PATCH and one DELETE. The final upload needs one POST and one HEAD.
        #expect(upload.methods.count { $0 == "POST" } == lengths.count + 1)
        #expect(upload.methods.count { $0 == "PATCH" } == lengths.count)
        #expect(upload.methods.count { $0 == "HEAD" } == 1)
        #expect(upload.methods.suffix(lengths.count).allSatisfy { $0 == "DELETE" })
        #expect(upload.recorder.checkpoints.last?.confirmed == Int64(size))
        #expect(upload.recorder.progress.last.map { [$0.sent, $0.confirmed] } == [Int64(size), Int64(size)])
        await upload.end()
    }

    @Test func sendsSegmentsInParallel() async throws {
        let server = Server()
        let barrier = Locked(0)
        let all = DispatchSemaphore(value: 0)
        let upload = try TestUpload(size: 900, offers: "creation,concatenation") { request, _ in
            guard request.method == "PATCH" else { return server.answer(request) }
            let meet: ServerStep = .call {
                // Each request waits on a thread of the scripted server until all three requests have arrived.
                if barrier.withLock({ count in
                    count += 1
                    return count == 3
                }) {
                    for _ in 0..<3 { all.signal() }
                }
                all.wait()
            }
            return [meet] + server.answer(request)
        }
        var segmented = upload
        segmented.endpoint.settings["parallelThreshold"] = "1"
        segmented.options.segmentsPerFile = 3
        _ = try await segmented.run()
        #expect(upload.server.connectionCount >= 3)
        await upload.end()
    }

    @Test(arguments: [(99, 3, "creation,concatenation"), (1000, 1, "creation,concatenation"), (1000, 3, "creation")])
    func sendsOneUploadWithoutSegments(size: Int, segmentCount: Int, offers: String) async throws {
        let upload = try upload(size: size, segmentCount: segmentCount, offers: offers, server: Server())
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH"])
        await upload.end()
    }

    @Test func resumesOneSegment() async throws {
        let server = Server { request in
            request.method == "PATCH" && request.path == "/files/2" ? [.read(100), .reset] : nil
        }
        let upload = try upload(server: server)
        #expect(await upload.failure()?.failureClass == .transient)
        let checkpoint = try #require(upload.recorder.checkpoints.last)
        #expect(
            checkpoint.confirmed == 666 || checkpoint.confirmed == 668, "the other two segments are complete (334 + 332 or 334 + 334 bytes)"
        )
        let before = upload.requests.count
        _ = try await upload.run(from: checkpoint)
        let later = upload.requests.dropFirst(before)
        #expect(later.filter { $0.method == "PATCH" }.map(\.path) == ["/files/2"])
        #expect(later.count { $0.method == "HEAD" } == 4, "one HEAD for each segment, and one for the final upload")
        #expect(later.count { $0.method == "POST" } == 1)
        #expect(try content(upload) == TemporaryFile.content(size: 1000))
        #expect(upload.recorder.checkpoints.last?.confirmed == 1000)
        await upload.end()
    }

    @Test func readsOffsetsAfterLostFinalResponse() async throws {
        let server = Server { request in
            request.headers["upload-concat"]?.hasPrefix("final;") == true ? [.reset] : nil
        }
        let upload = try upload(server: server)
        #expect(await upload.failure()?.failureClass == .transient)
        let finals = { upload.requests.count { $0.headers["upload-concat"]?.hasPrefix("final;") == true } }
        #expect(finals() == 1)
        let before = upload.requests.count
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.requests.dropFirst(before).prefix(3).allSatisfy { $0.method == "HEAD" })
        #expect(finals() == 2)
        await upload.end()
    }

    /// Some servers remove the segments after concatenation. Without the response, the location of the result is unknown, so the error
    /// reports that the file must restart.
    @Test func restartsIfSegmentsAreGoneAfterLostResponse() async throws {
        let server = Server()
        server.state.withLock { state in
            state.faults = [
                { [weak server] request in
                    guard request.headers["upload-concat"]?.hasPrefix("final;") == true else { return nil }
                    return [.call { server?.state.withLock { $0.uploads = [:] } }, .reset]
                }
            ]
        }
        let upload = try upload(server: server)
        #expect(await upload.failure()?.failureClass == .transient)
        let before = upload.requests.count
        #expect(await upload.failure(from: upload.recorder.checkpoints.last)?.failureClass == .resumeLost)
        #expect(upload.requests.dropFirst(before).allSatisfy { $0.method == "HEAD" })
        await upload.end()
    }

    /// A server that rejects the concatenation has concatenated nothing, so missing segments can be replaced.
    @Test func replacesMissingSegmentAfterRejection() async throws {
        let server = Server { request in request.headers["upload-concat"]?.hasPrefix("final;") == true ? [.tus(423)] : nil }
        let upload = try upload(server: server)
        #expect(await upload.failure()?.failureClass == .transient)
        server.state.withLock { $0.uploads["/files/1"] = nil }
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(try content(upload) == TemporaryFile.content(size: 1000))
        await upload.end()
    }

    @Test func restartsOnlyMissingSegment() async throws {
        let server = Server { request in
            request.method == "PATCH" && request.path == "/files/2" ? [.read(100), .reset] : nil
        }
        let upload = try upload(server: server)
        _ = await upload.failure()
        let before = upload.requests.count
        server.state.withLock { $0.uploads["/files/1"] = nil }
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        let after = upload.requests.dropFirst(before)
        #expect(after.count { $0.method == "POST" && $0.headers["upload-concat"] == "partial" } == 1)
        // One PATCH sends the missing segment. The other PATCH sends the remaining bytes of the interrupted segment.
        #expect(after.count { $0.method == "PATCH" } == 2)
        await upload.end()
    }

    /// Both segments have expired. One of them is complete, so only the other one is sent again.
    @Test func restartsOnlyIncompleteExpiredSegment() async throws {
        let server = Server { request in request.method == "PATCH" ? [.read(nil), .reset] : nil }
        var upload = try TestUpload(size: 1000, offers: "creation,concatenation") { request, _ in
            server.answer(request).map { step in
                guard case .answer(let status, var headers, let body) = step else { return step }
                if request.method == "POST" { headers["Upload-Expires"] = "Wed, 25 Jun 2014 16:00:00 GMT" }
                headers["Date"] = "Wed, 25 Jun 2014 16:00:01 GMT"
                return .answer(status, headers, body: body)
            }
        }
        upload.endpoint.settings["parallelThreshold"] = "1"
        upload.options.segmentsPerFile = 2
        #expect(await upload.failure()?.failureClass == .transient)
        let before = upload.requests
        let cut = try #require(before.first { $0.method == "PATCH" }?.path)
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        let later = upload.requests.dropFirst(before.count)
        #expect(later.count { $0.headers["upload-concat"] == "partial" } == 1)
        #expect(later.filter { $0.method == "PATCH" }.map(\.path) == ["/files/3"])
        #expect(later.contains { $0.method == "DELETE" && $0.path == cut })
        #expect(upload.recorder.checkpoints.last?.confirmed == 1000)
        await upload.end()
    }

    /// The server rejects the concatenation with 404. If all segments still exist, a restart would not help, so the file fails.
    @Test(arguments: [true, false]) func restartsOnlyIfSegmentIsGoneAtConcatenation(isGone: Bool) async throws {
        let server = Server { request in
            request.method == "PATCH" && request.path == "/files/2" ? [.read(100), .reset] : nil
        }
        let upload = try upload(server: server)
        _ = await upload.failure()
        server.state.withLock { state in
            state.faults = [
                { request in
                    guard request.headers["upload-concat"]?.hasPrefix("final;") == true else { return nil }
                    return [.call { if isGone { server.state.withLock { $0.uploads["/files/3"] = nil } } }, .tus(404)]
                }
            ]
        }
        #expect(await upload.failure(from: upload.recorder.checkpoints.last)?.failureClass == (isGone ? .resumeLost : .permanent))
        await upload.end()
    }

    @Test func stopsOtherSegmentsAfterRejection() async throws {
        let server = Server { request in
            request.method == "PATCH" && request.path == "/files/1" ? [.tus(415)] : nil
        }
        let upload = try TestUpload(size: 1000, offers: "creation,concatenation") { request, _ in
            request.method == "PATCH" && request.path != "/files/1" ? [.silence] : server.answer(request)
        }
        var segmented = upload
        segmented.endpoint.settings["parallelThreshold"] = "1"
        segmented.options.segmentsPerFile = 3
        #expect(await segmented.failure()?.failureClass == .permanent)
        await upload.end()
    }

    @Test func createsFinalUploadBeforeContent() async throws {
        let server = Server { request in
            request.method == "PATCH" && request.path == "/files/2" ? [.read(100), .reset] : nil
        }
        let upload = try upload(offers: "creation,concatenation,concatenation-unfinished", server: server)
        #expect(await upload.failure()?.failureClass == .transient)
        let posts = upload.requests.prefix(4)
        #expect(posts.allSatisfy { $0.method == "POST" })
        #expect(posts.last?.headers["upload-concat"]?.hasPrefix("final;") == true)
        #expect(upload.methods.count { $0 == "HEAD" } == 1, "a HEAD only for the interrupted segment, not for new segments")
        let receipt = try await upload.run(from: upload.recorder.checkpoints.last)
        #expect(upload.methods.count { $0 == "POST" } == 4)
        #expect(receipt.remoteURL?.hasPrefix(upload.server.url("/files/")) == true)
        #expect(try content(upload) == TemporaryFile.content(size: 1000))
        await upload.end()
    }

    @Test func repeatsFinalUploadAfterContentIfServerRejectsEarlyRequest() async throws {
        let server = Server { $0.headers["upload-concat"]?.hasPrefix("final;") == true ? [.tus(400)] : nil }
        let upload = try upload(offers: "creation,concatenation,concatenation-unfinished", server: server)
        _ = try await upload.run()
        #expect(upload.methods.prefix(4) == ["POST", "POST", "POST", "POST"])
        #expect(upload.requests.filter { $0.headers["upload-concat"]?.hasPrefix("final;") == true }.count == 2)
        #expect(try content(upload) == TemporaryFile.content(size: 1000))
        await upload.end()
    }

    @Test func failsTransientlyUntilConcatenationIsFinished() async throws {
        let isDone = Locked(false)
        let server = Server()
        let upload = try TestUpload(size: 1000, offers: "creation,concatenation") { request, _ in
            request.method == "HEAD" && request.path == "/files/4" && !isDone.withLock { $0 } ? [.tus(200)] : server.answer(request)
        }
        var segmented = upload
        segmented.endpoint.settings["parallelThreshold"] = "1"
        segmented.options.segmentsPerFile = 3
        #expect(await segmented.failure()?.failureClass == .transient)
        isDone.withLock { $0 = true }
        let before = upload.requests.count
        _ = try await segmented.run(from: upload.recorder.checkpoints.last)
        #expect(upload.requests.dropFirst(before).map(\.method) == ["HEAD", "DELETE", "DELETE", "DELETE"])
        await upload.end()
    }

    @Test func discardRemovesAllUploads() async throws {
        let server = Server { request in
            request.method == "PATCH" && request.path == "/files/2" ? [.read(100), .reset] : nil
        }
        let upload = try upload(server: server)
        _ = await upload.failure()
        let checkpoint = try #require(upload.recorder.checkpoints.last)
        try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        #expect(server.state.withLock { $0.uploads.isEmpty })
        await upload.end()
    }

    /// After a server error (500), the receipt has a warning, and a checkpoint with which the queue can remove the segments later. If the server
    /// forbids the removal (403), the receipt has only the warning. If the server does not support removal (405), the receipt has neither.
    @Test(arguments: [(500, 1, 2), (403, 1, 0), (405, 0, 0)])
    func reportsUnremovedSegments(status: Int, warnings: Int, leftovers: Int) async throws {
        let server = Server()
        let allowsRemoval = Locked(false)
        let upload = try TestUpload(size: 1000, offers: "creation,concatenation") { request, _ in
            request.method == "DELETE" && !allowsRemoval.withLock { $0 } ? [.tus(status)] : server.answer(request)
        }
        var segmented = upload
        segmented.endpoint.settings["parallelThreshold"] = "1"
        segmented.options.segmentsPerFile = 2
        let receipt = try await segmented.run()
        #expect(receipt.warnings.count == warnings)
        #expect((receipt.leftovers == nil) == (leftovers == 0))
        allowsRemoval.withLock { $0 = true }
        let before = server.state.withLock { $0.uploads.count }
        if let checkpoint = receipt.leftovers {
            try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        }
        #expect(server.state.withLock { $0.uploads.count } == before - leftovers)
        let whole = try #require(receipt.remoteURL)
        #expect(upload.requests.filter { $0.method == "DELETE" }.allSatisfy { !whole.hasSuffix($0.path) })
        await upload.end()
    }
}
