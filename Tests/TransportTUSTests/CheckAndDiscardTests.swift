import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct CheckAndDiscardTests {
    @Test func aServerTellsWhatItCanDo() async throws {
        let upload = try TestUpload(
            size: 1,
            options: [.answer(204, ["Tus-Version": "1.0.0,0.2.2", "Tus-Extension": "creation, termination", "Tus-Max-Size": "1000"])],
            answers: [])
        let report = try await upload.transport.check(upload.endpoint, credentials: upload.credentials)
        #expect(report.version == "1.0.0")
        #expect(report.features == ["creation", "termination"])
        #expect(report.maximumSize == 1000)
        #expect(upload.server.requests.first?.headers["tus-resumable"] == nil)
        await upload.end()
    }

    @Test(arguments: [
        (ServerStep.answer(200, body: "hello"), FailureClass.unreachable), (.answer(404), .unreachable),
        (.answer(204, ["Tus-Version": "2.0"]), .permanent), (.answer(412, ["Tus-Version": "2.0"]), .permanent),
        (.answer(302, ["Location": "/login"]), .unreachable), (.answer(503), .transient),
    ])
    func whatIsNoTUSServerIsSaidSo(answer: ServerStep, expected: FailureClass) async throws {
        let upload = try TestUpload(size: 1, options: [answer], answers: [])
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.check(upload.endpoint, credentials: upload.credentials)
        }
        #expect(error?.failureClass == expected)
        #expect(upload.questions == 1)
        await upload.end()
    }

    @Test(arguments: [204, 200, 404, 410]) func whatIsGoneIsRemoved(status: Int) async throws {
        let upload = try TestUpload(size: 1, answers: [[.tus(status)]])
        try await upload.transport.discard(upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        #expect(upload.methods == ["DELETE"])
        #expect(upload.requests.first?.path == "/files/1")
        await upload.end()
    }

    static let refusals: [(Int, FailureClass)] =
        [403, 405, 501].map { ($0, .unsupported) } + [301, 302, 303, 307].map { ($0, .unreachable) }
        + [(400, .permanent), (401, .credentials)] + [408, 409, 423, 429, 500, 502, 503].map { ($0, .transient) } + [(412, .permanent)]

    @Test(arguments: refusals) func whatCanNotBeRemoved(status: Int, failureClass: FailureClass) async throws {
        let upload = try TestUpload(size: 1, answers: [[.tus(status, ["Tus-Version": "3"])]])
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.discard(upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        }
        #expect(error?.failureClass == failureClass)
        #expect(upload.methods == ["DELETE"])
        await upload.end()
    }

    @Test func aPageInTheWayOfARemoval() async throws {
        let upload = try TestUpload(size: 1, answers: [[.answer(200, ["Content-Type": "text/html"], body: "<html>")]])
        let error = await #expect(throws: TransferError.self) {
            try await upload.transport.discard(upload.checkpoint(), at: upload.endpoint, credentials: upload.credentials)
        }
        // It may be gone at the next attempt.
        #expect(error?.failureClass == .unreachable)
        await upload.end()
    }

    @Test func whatWasNeverCreatedNeedsNoRequest() async throws {
        let upload = try TestUpload(size: 1, answers: [])
        let checkpoint = Checkpoint(data: Data("{}".utf8), confirmed: 0)
        try await upload.transport.discard(checkpoint, at: upload.endpoint, credentials: upload.credentials)
        #expect(upload.server.requests.isEmpty)
        await upload.end()
    }
}
