import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct ExpiryTests {
    private static let date = "Wed, 25 Jun 2014 16:00:00 GMT"
    private static let later = "Wed, 25 Jun 2014 16:00:01 GMT"

    @Test(
        arguments: [(later, date, nil), (date, date, FailureClass.resumeLost), (date, later, .resumeLost)]
            as [(String, String, FailureClass?)])
    func comparesExpiryDateWithServerClock(expires: String, now: String, failure: FailureClass?) async throws {
        let upload = try TestUpload(
            size: 10,
            answers: [
                [.tus(201, ["Location": "/files/1", "Upload-Expires": expires])], [.read(nil), .reset], [.offset(0)],
                [.tus(200, ["Upload-Offset": "0", "Date": now])], [.accepted(10)], [.answer(404)],
            ])
        #expect(await upload.failure()?.failureClass == .transient)
        let error = await upload.failure(from: upload.recorder.checkpoints.last)
        #expect(error?.failureClass == failure)
        #expect(upload.methods.last == (failure == nil ? "GET" : "HEAD"))
        await upload.end()
    }

    @Test func usesLastExpiryDate() async throws {
        let upload = try TestUpload(
            size: 10,
            answers: [
                [.tus(201, ["Location": "/files/1", "Upload-Expires": Self.date])],
                [.tus(204, ["Upload-Offset": "5", "Upload-Expires": Self.later])], [.offset(5)], [.read(nil), .reset], [.offset(5)],
                [.tus(200, ["Upload-Offset": "5", "Date": Self.date])], [.accepted(10)], [.answer(404)],
            ])
        #expect(await upload.failure()?.failureClass == .transient)
        // The checkpoint contains the last reported date, for the status display.
        #expect(upload.recorder.checkpoints.last?.expiresAt == Date(timeIntervalSince1970: 1_403_712_001))
        _ = try await upload.run(from: upload.recorder.checkpoints.last)
        await upload.end()
    }

    @Test func ignoresExpiryOfCompleteUpload() async throws {
        let upload = try TestUpload(
            size: 10, answers: [[.tus(200, ["Upload-Offset": "10", "Date": Self.later, "Upload-Expires": Self.date])]])
        _ = try await upload.run(from: try upload.checkpoint())
        await upload.end()
    }

    @Test(arguments: ["soon", "", "Wed, 45 Jun 2014 16:00:00 GMT"]) func ignoresInvalidDates(expires: String) async throws {
        let upload = try TestUpload(
            size: 10, answers: [[.tus(200, ["Upload-Offset": "0", "Date": Self.later, "Upload-Expires": expires])], [.accepted(10)]])
        _ = try await upload.run(from: try upload.checkpoint())
        await upload.end()
    }
}
