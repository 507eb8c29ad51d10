import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

@Suite struct GrowingSourceTests {
    /// If the server loses confirmed bytes, the client can't send them again. The bytes may be gone from the disk, so the client would send
    /// zeros in their place.
    @Test func failsIfServerLosesConfirmedBytes() async throws {
        let growth = SourceGrowth(.growing(5))
        let upload = try TestUpload(size: 10, offers: "creation,creation-defer-length") { _, number in
            switch number {
            case 0: return [.created]
            case 1:
                growth.update(.complete(10))
                return [.accepted(5)]
            case 2: return [.read(nil), .reset]
            default: return [.offset(3)]
            }
        }
        let file = try upload.file.source
        let source = UploadSource(path: file.path, identity: file.identity, growth: growth)
        let error = await upload.failure(source: source)
        #expect(error?.failureClass == .sourceLost, "\(String(describing: error))")
        #expect(upload.methods == ["POST", "PATCH", "PATCH", "HEAD"])
        // A later attempt fails, too.
        #expect(await upload.failure(from: upload.recorder.checkpoints.last, source: source)?.failureClass == .sourceLost)
        #expect(upload.methods.last == "HEAD")
        await upload.end()
    }

    /// The size of each chunk except the last must be a multiple of `chunkMultiple`. The client therefore allows the producer to run
    /// ahead to the next multiple.
    @Test func appliesChunkMultipleToStreams() async throws {
        let lifts = Locked<[Int64]>([])
        let handle = Locked<SourceGrowth?>(nil)
        let growth = SourceGrowth(
            .growing(5),
            lift: { offset in
                lifts.withLock { $0.append(offset) }
                handle.withLock { $0 }?.update(offset < 10 ? .growing(offset + 1) : .complete(10))
            })
        handle.withLock { $0 = growth }
        var upload = try TestUpload(
            size: 10, offers: "creation,creation-defer-length", answers: [[.created], [.accepted(4)], [.accepted(8)], [.accepted(10)]])
        upload.endpoint.settings["chunkMultiple"] = "4"
        let file = try upload.file.source
        _ = try await upload.run(source: UploadSource(path: file.path, identity: file.identity, growth: growth))
        #expect(upload.requests.filter { $0.method == "PATCH" }.map(\.body.count) == [4, 4, 2])
        #expect(lifts.withLock { $0 } == [4, 8, 12, 14])
        await upload.end()
    }
}
