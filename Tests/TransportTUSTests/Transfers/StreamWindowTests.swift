import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// The sizes of the requests that send a stream. The producer may run a limited number of bytes ahead of the confirmed offset.
@Suite struct StreamWindowTests {
    private static let writeSize = 1 << 18

    /// Uploads a stream, and returns the size of each `PATCH` request.
    ///
    /// - Parameters:
    ///   - ahead: The maximum number of bytes that the producer is ahead of the confirmed offset.
    ///   - initial: The number of available bytes when the upload begins.
    ///   - pace: The number of bytes that are produced during a request, or nil for all permitted bytes.
    private func sizes(total: Int, ahead: Int, initial: Int, pace: Int? = nil) async throws -> [Int] {
        let (produced, sharedGrowth) = (Locked(initial), Locked<SourceGrowth?>(nil))
        let resume: @Sendable (Int, Bool) -> Void = { confirmed, onlyIfNeeded in
            let available = produced.withLock { produced in
                if !onlyIfNeeded || produced == confirmed { produced = min(total, confirmed + ahead, produced + (pace ?? total)) }
                return produced
            }
            sharedGrowth.withLock { $0 }?.update(available < total ? .growing(Int64(available)) : .complete(Int64(total)))
        }
        // Between two requests, the producer writes only if the upload waits for more bytes.
        let growth = SourceGrowth(.growing(Int64(initial)), release: { resume(Int($0), true) })
        sharedGrowth.withLock { $0 = growth }
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

    /// The producer writes the last bytes of the window while a request is already in flight.
    @Test func sendsRequestsOfEqualSize() async throws {
        let (ahead, total) = (8 << 20, 40 << 20)
        let sizes = try await sizes(total: total, ahead: ahead, initial: ahead - Self.writeSize)
        #expect(sizes.dropLast().allSatisfy { $0 >= (ahead - Self.writeSize) / 2 }, "\(sizes)")
        #expect(Set(sizes.dropFirst().dropLast(2)) == [ahead / 2], "\(sizes)")
        #expect(sizes.count <= total / (ahead / 2) + 1)
    }

    @Test func sendsFirstBytesImmediately() async throws {
        let ahead = 4 << 20
        let sizes = try await sizes(total: 20 << 20, ahead: ahead, initial: Self.writeSize)
        #expect(sizes.first == Self.writeSize)
        #expect(Set(sizes.dropFirst().dropLast(2)) == [ahead / 2], "\(sizes)")
    }

    /// The client sends the bytes of a slow producer as they are produced, and does not wait for more bytes.
    @Test func doesNotWaitForSlowProducer() async throws {
        let sizes = try await sizes(total: 20 * Self.writeSize, ahead: 8 << 20, initial: Self.writeSize, pace: Self.writeSize)
        #expect(sizes.dropLast().allSatisfy { $0 == Self.writeSize }, "\(sizes)")
    }

    /// The window is smaller than two requests of a useful size.
    @Test func doesNotDivideSmallWindow() async throws {
        let sizes = try await sizes(total: 3_000_000, ahead: 1_000_000, initial: 1_000_000)
        #expect(sizes == [1_000_000, 1_000_000, 1_000_000])
    }
}
