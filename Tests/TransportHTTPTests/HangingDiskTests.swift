import Dispatch
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportHTTP
import TransportSupport

/// Disks that do not respond. A transfer that waits for such a disk does not delay transfers on other disks.
@Suite(.timeLimit(.minutes(10))) struct HangingDiskTests {
    private let disks = DiskThreads(limit: 1)
    private let gate = DispatchSemaphore(value: 0)

    @Test(arguments: ["put", "form"]) func hangingUploadDoesNotDelayOthers(mode: String) async throws {
        let transfer = try TestTransfer(mode, size: 10, disks: disks) { _, _ in [.answer(201)] }
        var slow = transfer
        // This is the same file, but the transport treats it as a file on another disk, because the device in its identity differs.
        let source = try #require(transfer.file).source
        var identity = source.identity
        identity.device += 1
        let other = UploadSource(path: source.path, identity: identity)
        slow.source = other
        let hanging = disks.threads(for: other)
        try hanging.submit { [gate] in gate.wait() }
        let waiting = Task { [slow] in try await slow.run() }
        _ = try await transfer.run()
        #expect(transfer.server.requests.count == 1)
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        gate.signal()
        withExtendedLifetime(hanging) {}
        await transfer.end()
    }

    @Test func hangingAdditionalFileDoesNotDelayOthers() async throws {
        let transfer = try TestTransfer("form", size: 10, disks: disks) { _, _ in [.answer(201)] }
        let additionalFile = try TemporaryFile(size: 10)
        var slow = transfer
        slow.endpoint.settings["file.picture"] = additionalFile.path.string
        let hanging = disks.threads(forFilesIn: additionalFile.path.removingLastComponent())
        try hanging.submit { [gate] in gate.wait() }
        let waiting = Task { [slow] in try await slow.run() }
        _ = try await transfer.run()
        waiting.cancel()
        await #expect(throws: CancellationError.self) { try await waiting.value }
        gate.signal()
        withExtendedLifetime(hanging) {}
        await transfer.end()
    }

    @Test func hangingDownloadDoesNotDelayOthers() async throws {
        let slow = try TestTransfer("get", disks: disks) { _, _ in [.answer(200, body: "slow")] }
        let quick = try TestTransfer("get", disks: disks) { _, _ in [.answer(200, body: "quick")] }
        let hanging = disks.threads(for: DownloadDestination(root: slow.folder, name: "file", partName: ".file.part"))
        try hanging.submit { [gate] in gate.wait() }
        let waiting = Task { try await slow.run() }
        _ = try await quick.run()
        #expect(quick.content == "quick")
        gate.signal()
        _ = try await waiting.value
        #expect(slow.content == "slow")
        withExtendedLifetime(hanging) {}
        await slow.end()
        await quick.end()
    }
}
