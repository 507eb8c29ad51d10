import Dispatch
import Locking
import SystemPackage
import Testing
import TransferCore
import TransportSupport

/// A transfer that waits for one disk must not delay transfers that use other disks.
@Suite(.timeLimit(.minutes(10)))
struct HangingDiskTests {
    private let disks = DiskThreads(limit: 1)
    private let gate = DispatchSemaphore(value: 0)

    /// Returns a source for the same file, but with the device number of another disk.
    private func onOtherDisk(_ source: UploadSource) throws -> UploadSource {
        var identity = try SourceIdentity(ofFileAt: source.path)
        identity.device += 1
        return UploadSource(path: source.path, identity: identity)
    }

    @Test func hangingUploadDoesNotDelayOthers() async throws {
        try await ProcessFixture.with(disks: disks) { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(1_000))
            let slow = try onOtherDisk(source)
            let hanging = disks.threads(for: slow)
            try hanging.submit { [gate] in gate.wait() }
            let waiting = Task { try await transfer.upload(slow) }
            _ = try await transfer.upload(source)
            #expect(transfer.stored == content(1_000))
            waiting.cancel()
            await #expect(throws: CancellationError.self) { try await waiting.value }
            gate.signal()
            withExtendedLifetime(hanging) {}
        }
    }

    /// The disk hangs after the file was opened, so the file's next bytes can't be read.
    @Test func hangingUploadCanBeCancelled() async throws {
        try await ProcessFixture.with(disks: disks) { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(10_000_000))
            let hanging = disks.threads(for: source)
            let (reports, report) = AsyncStream.makeStream(of: Void.self)
            let reporter = AttemptReporter(
                progress: { [gate] sent, _ in
                    guard sent > 0 else { return }
                    try? hanging.submit { gate.wait() }
                    report.yield()
                }, checkpoint: { _ in })
            let upload = Task { try await transfer.upload(source, reporting: reporter) }
            for await _ in reports { break }
            upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
            for _ in 0..<1_000 { gate.signal() }
        }
    }

    /// The server has sent more bytes for the hanging disk than a connection may have in flight.
    @Test func largeHangingDownloadDoesNotDelayOthers() async throws {
        try await ProcessFixture.with(disks: disks) { fixture in
            try fixture.put(content(20_000_000), "a.bin")
            var quick = TestTransfer(fixture)
            quick.settings = ["maxConnections": "1"]
            var slow = quick
            slow.root = fixture.folder.appending("slow")
            try fixture.makeFolder(slow.root)
            let hanging = disks.threads(for: slow.destination)
            let (reports, report) = AsyncStream.makeStream(of: Void.self)
            let hangs = Locked(false)
            let reporter = AttemptReporter(
                progress: { [gate] sent, _ in
                    // The disk hangs after more bytes than the request window contains.
                    let isFirst = hangs.withLock { hangs in
                        defer { hangs = sent > 8_000_000 || hangs }
                        return sent > 8_000_000 && !hangs
                    }
                    guard isFirst else { return }
                    try? hanging.submit { gate.wait() }
                    report.yield()
                }, checkpoint: { _ in })
            let waiting = Task { [slow] in try await slow.download(reporting: reporter) }
            for await _ in reports { break }
            try fixture.put(content(6_000_000, seed: 2), "b.bin")
            quick.name = "b.bin"
            _ = try await quick.download()
            #expect(quick.received == content(6_000_000, seed: 2) && slow.received == nil)
            gate.signal()
            _ = try await waiting.value
            #expect(slow.received == content(20_000_000) && fixture.connector.servers.count == 1)
        }
    }

    @Test func hangingDownloadDoesNotDelayOthers() async throws {
        try await ProcessFixture.with(disks: disks) { fixture in
            try fixture.put(content(1_000), "a.bin")
            let quick = TestTransfer(fixture)
            var slow = TestTransfer(fixture)
            slow.root = fixture.folder.appending("slow")
            try fixture.makeFolder(slow.root)
            let hanging = disks.threads(for: slow.destination)
            try hanging.submit { [gate] in gate.wait() }
            let waiting = Task { [slow] in try await slow.download() }
            _ = try await quick.download()
            #expect(quick.received == content(1_000) && slow.received == nil)
            gate.signal()
            _ = try await waiting.value
            #expect(slow.received == content(1_000))
            withExtendedLifetime(hanging) {}
        }
    }
}
