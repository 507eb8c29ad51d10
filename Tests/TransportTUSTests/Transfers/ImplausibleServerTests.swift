import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct ImplausibleServerTests {
    @Test(arguments: [11, 1_000_000]) func rejectsOffsetBeyondEnd(offset: Int) async throws {
        let patch = try TestUpload(size: 10, answers: [[.created], [.accepted(offset)]])
        #expect(await patch.failure()?.failureClass == .resumeLost)
        await patch.end()
        let head = try TestUpload(size: 10, answers: [[.offset(offset)]])
        #expect(await head.failure(from: try head.checkpoint())?.failureClass == .resumeLost)
        await head.end()
    }

    @Test func rejectsOtherLength() async throws {
        let upload = try TestUpload(size: 10, answers: [[.offset(3, of: 11)]])
        #expect(await upload.failure(from: try upload.checkpoint())?.failureClass == .resumeLost)
        await upload.end()
    }

    @Test func rejectsOffsetBeyondSentBytes() async throws {
        var upload = try TestUpload(size: 10_000, answers: [[.created], [.read(1000), .reset], [.offset(5000)]])
        let isUsedUp = Locked(false)
        upload.allowance = { _ in
            isUsedUp.withLock { wasUsedUp in
                defer { wasUsedUp = true }
                return wasUsedUp ? Allowance(bytes: 0, retryAfter: .seconds(3600)) : Allowance(bytes: 1000)
            }
        }
        #expect(await upload.failure()?.failureClass == .resumeLost)
        #expect(upload.methods == ["POST", "PATCH", "HEAD"])
        await upload.end()
    }

    @Test(arguments: ["", "-1", "x", "1 2", "99999999999999999999"]) func rejectsInvalidOffsets(offset: String) async throws {
        let upload = try TestUpload(size: 10, answers: [[.tus(200, ["Upload-Offset": offset])], [.accepted(10)]])
        #expect(await upload.failure(from: try upload.checkpoint())?.failureClass == .protocolViolation)
        await upload.end()
        let patch = try TestUpload(size: 10, answers: [[.created], [.tus(204, ["Upload-Offset": offset])], [.offset(4)]])
        #expect(await patch.failure()?.failureClass == .protocolViolation)
        #expect(patch.methods == ["POST", "PATCH", "HEAD"])
        #expect(patch.recorder.checkpoints.last?.confirmed == 4)
        await patch.end()
    }

    @Test func failsIfOffsetDoesNotAdvance() async throws {
        let upload = try TestUpload(size: 10, answers: [[.created], [.accepted(0)], [.offset(0)]])
        #expect(await upload.failure()?.failureClass == .transient)
        #expect(upload.methods == ["POST", "PATCH", "HEAD"])
        await upload.end()
    }
}
