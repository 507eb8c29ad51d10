import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// The size of each request of a stream whose producer may run a limited number of bytes ahead of the confirmed offset.
@Suite struct StreamWindowTests {
    private static let piece = 1 << 18

    /// Uploads a stream, and returns the size of each `PATCH` request.
    ///
    /// - Parameters:
    ///   - ahead: The number of bytes that the producer may be ahead.
    ///   - begun: The number of available bytes when the upload begins.
    ///   - pace: The number of bytes that are produced during a request, or nil for all permitted bytes.
    private func sizes(total: Int, ahead: Int, begun: Int, pace: Int? = nil) async throws -> [Int] {
        let (produced, handle) = (Locked(begun), Locked<SourceGrowth?>(nil))
        let resume: @Sendable (Int, Bool) -> Void = { confirmed, isUrgent in
            let now = produced.withLock { produced in
                if !isUrgent || produced == confirmed { produced = min(total, confirmed + ahead, produced + (pace ?? total)) }
                return produced
            }
            handle.withLock { $0 }?.update(now < total ? .growing(Int64(now)) : .complete(Int64(total)))
        }
        // Between two requests, the producer writes only if the upload waits for more bytes.
        let growth = SourceGrowth(.growing(Int64(begun)), release: { resume(Int($0), true) })
        handle.withLock { $0 = growth }
        let upload = try TestUpload(size: total, offers: "creation,creation-defer-length") { request, _ in
            guard request.method == "PATCH" else { return [.created] }
            let offset = request.headers["upload-offset"].flatMap { Int($0) } ?? 0
            return [
                // The server has not confirmed any byte of this request.
                .read(nil), .call { resume(offset, false) }, .accepted(offset + request.contentLength),
            ]
        }
        let file = try upload.file.source
        _ = try await upload.run(source: UploadSource(path: file.path, identity: file.identity, growth: growth))
        let patches = upload.requests.filter { $0.method == "PATCH" }
        #expect(patches.flatMap(\.body) == TemporaryFile.content(size: total))
        await upload.end()
        return patches.map(\.contentLength)
    }

    /// The last piece before the window's end is written when a request is already in flight.
    @Test func sendsEvenRequests() async throws {
        let (ahead, total) = (8 << 20, 40 << 20)
        let sizes = try await sizes(total: total, ahead: ahead, begun: ahead - Self.piece)
        #expect(sizes.dropLast().allSatisfy { $0 >= (ahead - Self.piece) / 2 }, "\(sizes)")
        #expect(Set(sizes.dropFirst().dropLast(2)) == [ahead / 2], "\(sizes)")
        #expect(sizes.count <= total / (ahead / 2) + 1)
    }

    /// The first piece is sent as soon as it is available.
    @Test func sendsFirstPieceImmediately() async throws {
        let ahead = 4 << 20
        let sizes = try await sizes(total: 20 << 20, ahead: ahead, begun: Self.piece)
        #expect(sizes.first == Self.piece)
        #expect(Set(sizes.dropFirst().dropLast(2)) == [ahead / 2], "\(sizes)")
    }

    /// Bytes of a slow producer are sent as they are produced, without waiting for more.
    @Test func doesNotWaitForSlowProducer() async throws {
        let sizes = try await sizes(total: 20 * Self.piece, ahead: 8 << 20, begun: Self.piece, pace: Self.piece)
        #expect(sizes.dropLast().allSatisfy { $0 == Self.piece }, "\(sizes)")
    }

    /// The producer may be ahead by fewer bytes than two requests of a useful size contain.
    @Test func doesNotDivideSmallWindow() async throws {
        let sizes = try await sizes(total: 3_000_000, ahead: 1_000_000, begun: 1_000_000)
        #expect(sizes == [1_000_000, 1_000_000, 1_000_000])
    }
}
