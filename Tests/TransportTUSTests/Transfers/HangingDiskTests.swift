import Dispatch
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportSupport
import TransportTUS

/// Disks that do not respond. A transfer that waits for one disk does not delay transfers with other disks.
@Suite(.timeLimit(.minutes(10))) struct HangingDiskTests {
    private let disks = DiskThreads(limit: 1)
    private let gate = DispatchSemaphore(value: 0)

    @Test func hangingUploadDoesNotDelayOthers() async throws {
        let upload = try TestUpload(size: 10, disks: disks) { request, _ in [request.method == "POST" ? .created : .accepted(10)] }
        // This is the same file, but the transport treats it as a file on another disk, because the device in its identity differs.
        var identity = try upload.file.source.identity
        identity.device += 1
        let slow = UploadSource(path: upload.file.path, identity: identity)
        let hanging = disks.threads(for: slow)
        try hanging.submit { [gate] in gate.wait() }
        let waiting = Task { try await upload.run(source: slow) }
        _ = try await upload.run()
        #expect(upload.methods == ["POST", "PATCH"])
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        gate.signal()
        withExtendedLifetime(hanging) {}
        await upload.end()
    }

    @Test func hangingDownloadDoesNotDelayOthers() async throws {
        let slow = try TestDownload(disks: disks) { _, _ in [.answer(200, body: "slow")] }
        let quick = try TestDownload(disks: disks) { _, _ in [.answer(200, body: "quick")] }
        let hanging = disks.threads(for: DownloadDestination(root: slow.folder, name: "file", partName: ".file.part"))
        try hanging.submit { [gate] in gate.wait() }
        let waiting = Task { try await slow.run() }
        _ = try await quick.run()
        #expect(quick.isInPlace && quick.content == "quick")
        #expect(!slow.isInPlace)
        gate.signal()
        _ = try await waiting.value
        #expect(slow.isInPlace && slow.content == "slow")
        withExtendedLifetime(hanging) {}
        await slow.end()
        await quick.end()
    }
}
