import Foundation
import Logging
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Files whose content is sent in the creation request (extension *creation-with-upload*).
@Suite struct CreationWithUploadTests {
    private static let offers = "creation,creation-with-upload"

    private static func created(_ offset: Int?) -> ServerStep {
        .tus(201, ["Location": "/files/1"].merging(offset.map { ["Upload-Offset": "\($0)"] } ?? [:]) { $1 })
    }

    @Test func sendsSmallFileInOneRequest() async throws {
        let upload = try TestUpload(size: 3000, offers: Self.offers, answers: [[Self.created(3000)]])
        let receipt = try await upload.run()
        #expect(receipt.bytes == 3000)
        #expect(receipt.remoteURL == upload.server.url("/files/1"))
        #expect(upload.methods == ["POST"])
        let request = try #require(upload.requests.first)
        #expect(request.headers["upload-length"] == "3000")
        #expect(request.headers["content-type"] == "application/offset+octet-stream")
        #expect(request.headers["upload-offset"] == nil)
        #expect(request.headers["expect"] == nil)
        #expect(request.body == TemporaryFile.content(size: 3000))
        #expect(upload.recorder.checkpoints.map(\.confirmed) == [0])
        #expect(upload.recorder.progress.last.map { [$0.sent, $0.confirmed] } == [3000, 3000])
        await upload.end()
    }

    @Test(arguments: [(1 << 20, ["POST"]), (1 << 20 + 1, ["POST", "PATCH"]), (0, ["POST"])])
    func choosesRequestsBySize(size: Int, methods: [String]) async throws {
        let upload = try TestUpload(size: size, offers: Self.offers) { request, _ in
            request.method == "PATCH" ? [.accepted(size)] : [Self.created(request.contentLength)]
        }
        _ = try await upload.run()
        #expect(upload.methods == methods)
        #expect(upload.requests.map(\.contentLength).reduce(0, +) == size)
        await upload.end()
    }

    @Test func settingLimitsContentOfCreation() async throws {
        var upload = try TestUpload(size: 100, offers: Self.offers, answers: [[.created], [.accepted(100)]])
        upload.endpoint.settings["singleRequestSize"] = "99"
        _ = try await upload.run()
        #expect(upload.requests.map(\.contentLength) == [0, 100])
        await upload.end()
    }

    @Test func sessionOptionSeparatesCreationFromContent() async throws {
        var upload = try TestUpload(size: 100, offers: Self.offers, answers: [[.created], [.accepted(100)]])
        upload.options.creation = .separate
        _ = try await upload.run()
        #expect(upload.requests.map(\.contentLength) == [0, 100])
        await upload.end()
    }

    @Test func sendsTwoRequestsWithoutExtension() async throws {
        let upload = try TestUpload(size: 100, offers: "creation", answers: [[.created], [.accepted(100)]])
        _ = try await upload.run()
        #expect(upload.requests.map(\.contentLength) == [0, 100])
        await upload.end()
    }

    @Test func announcesLargeBody() async throws {
        let upload = try TestUpload(size: 300_000, offers: Self.offers) { request, _ in
            [.raw("HTTP/1.1 100 Continue\r\n\r\n"), Self.created(300_000)]
        }
        _ = try await upload.run()
        #expect(upload.requests.first?.headers["expect"] == "100-continue")
        await upload.end()
    }

    @Test(arguments: [nil, 0, 40] as [Int?]) func sendsContentThatServerDidNotStore(offset: Int?) async throws {
        let upload = try TestUpload(
            size: 100, offers: Self.offers, answers: [[Self.created(offset)], [.offset(offset ?? 0)], [.accepted(100)]])
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "HEAD", "PATCH"])
        #expect(upload.requests[2].headers["upload-offset"] == "\(offset ?? 0)")
        #expect(upload.requests[2].body == Array(TemporaryFile.content(size: 100)[(offset ?? 0)...]))
        await upload.end()
    }

    @Test func rejectsOffsetBeyondEnd() async throws {
        let upload = try TestUpload(size: 100, offers: Self.offers, answers: [[Self.created(101)], [.offset(101)]])
        #expect(await upload.failure()?.failureClass == .resumeLost)
        await upload.end()
    }

    /// Without the response, the client does not know the upload's URL, so it creates another upload with the same transfer ID.
    @Test func lostResponseLeavesAtMostOneUpload() async throws {
        let upload = try TestUpload(size: 100, offers: Self.offers, answers: [[.read(nil), .reset], [.created], [.accepted(100)]])
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.methods == ["POST"])
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        // The second creation has no content, because the content of an interrupted creation can't be resumed.
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        let identifier = "transferid \(Data("t-1".utf8).base64EncodedString())"
        let creations = upload.requests.filter { $0.method == "POST" }
        #expect(creations.allSatisfy { $0.headers["upload-metadata"]?.contains(identifier) == true })
        await upload.end()
    }

    @Test func repeatsCreationWithoutContentAfterStatus415() async throws {
        let upload = try TestUpload(size: 100, offers: Self.offers) { request, _ in
            if request.method == "PATCH" { return [.accepted(100)] }
            return [request.contentLength > 0 ? .tus(415) : .created]
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        // The transport remembers the rejection.
        _ = try await upload.run()
        #expect(upload.methods.suffix(2) == ["POST", "PATCH"])
        await upload.end()
    }

    @Test func repeatsCreationWithoutContentAfterStatus413() async throws {
        let upload = try TestUpload(size: 100, offers: Self.offers) { request, _ in
            if request.method == "PATCH" { return [.accepted(100)] }
            return [request.contentLength > 0 ? .answer(413) : .created]
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        await upload.end()
    }

    /// A proxy or a server may also respond with 400 when a connection closes within a request. So this status does not show whether the
    /// server accepts content in creations.
    @Test func repeatsCreationWithoutContentAfterStatus400() async throws {
        let upload = try TestUpload(size: 100, offers: Self.offers) { request, _ in
            if request.method == "PATCH" { return [.accepted(100)] }
            return [request.contentLength > 0 ? .answer(400) : .created]
        }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "POST", "PATCH"])
        // The transport does not remember this rejection, so the creation request of the next file contains the content.
        _ = try await upload.run()
        #expect(upload.methods.suffix(3) == ["POST", "POST", "PATCH"])
        await upload.end()
    }

    @Test(arguments: [400, 413, 415]) func reportsRejectedCreation(status: Int) async throws {
        let upload = try TestUpload(size: 100, offers: Self.offers) { _, _ in [.tus(status)] }
        #expect(await upload.failure()?.failureClass == .permanent)
        #expect(upload.methods == ["POST", "POST"])
        await upload.end()
    }

    @Test func classifiesErrorsLikeCreationWithoutContent() async throws {
        for expected in StatusTests.creation where ![204, 400, 413, 415].contains(expected.status) {
            let upload = try TestUpload(size: 10, offers: Self.offers) { _, _ in [.tus(expected.status)] }
            let error = await upload.failure()
            #expect(error?.failureClass == expected.failureClass, "\(expected.status)")
            #expect(upload.methods == ["POST"])
            await upload.end()
        }
    }
}
