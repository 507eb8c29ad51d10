import FolderTransport
import Foundation
import Logging
import Synchronization
import SystemPackage
import Testing
import TransferCore

/// A file gets its final name only once its upload is complete. This holds even if an attempt fails or the process exits during the upload.
@Suite struct PlacingTests {
    private let fixture: FolderFixture
    private let content = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })

    init() throws {
        fixture = try FolderFixture()
    }

    private var names: [String] {
        get throws { try FileManager.default.subpathsOfDirectory(atPath: fixture.archive.path).sorted() }
    }

    /// The checkpoints at which a test can interrupt an upload. A slow upload may save more checkpoints, because the transport also saves one every
    /// five seconds.
    enum InterruptionPoint: String, CaseIterable, CustomTestStringConvertible {
        case beforePartFile, atLastByte, afterPlacing

        var testDescription: String { rawValue }

        func isReached(by checkpoint: Checkpoint, of size: Int) -> Bool {
            switch self {
            case .beforePartFile: true
            case .atLastByte: checkpoint.confirmed == size
            case .afterPlacing: String(decoding: checkpoint.data, as: UTF8.self).contains(#""isPlaced":true"#)
            }
        }
    }

    /// Uploads a local file.
    ///
    /// - Parameters:
    ///   - partID: The ID for the part file after another queue has worked on the transfer; nil if no other queue has.
    ///   - refusing: The point at which saving a checkpoint fails, which ends the upload; nil to save all checkpoints.
    @discardableResult
    private func upload(
        as name: String = "reel.mov", from checkpoint: Checkpoint? = nil, overwrite: OverwritePolicy = .never, partID: String? = nil,
        refusing: InterruptionPoint? = nil, _ saved: SavedCheckpoints = SavedCheckpoints()
    ) async throws -> TransferReceipt {
        let path = fixture.folder.appending("source")
        if !FileManager.default.fileExists(atPath: path.string) { try content.write(to: URL(filePath: path.string)) }
        let source = UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))
        var attempt = FileAttempt(
            transferID: "1-0-1", endpoint: fixture.endpoint, source: source, remotePath: try RemotePath(name), checkpoint: checkpoint,
            options: AttemptOptions(overwrite: overwrite), credentials: fixture.credentials, logger: Logger(label: "test"))
        if let partID { attempt.partID = partID }
        return try await fixture.transport.perform(
            attempt, reporting: saved.reporter { [size = content.count] in refusing?.isReached(by: $0, of: size) == true })
    }

    @Test func completedUploadLeavesNoPartFile() async throws {
        let receipt = try await upload(as: "2026/reel 1.mov")
        #expect(try names == ["2026", "2026/reel 1.mov"])
        #expect(receipt.remoteURL == "folder://localhost\(fixture.archive.path)/2026/reel%201.mov")
        #expect(try Data(contentsOf: fixture.archive.appending(path: "2026/reel 1.mov")) == content)
    }

    @Test func uploadReplacesExistingFileOnlyIfConfigured() async throws {
        let mine = Data("mine".utf8)
        try mine.write(to: fixture.archive.appending(path: "reel.mov"))
        let error = await #expect(throws: TransferError.self) { try await upload() }
        #expect(error?.failureClass == .permanent && error?.code == .fileExists)
        #expect(try Data(contentsOf: fixture.archive.appending(path: "reel.mov")) == mine)
        try await upload(overwrite: .always)
        #expect(try Data(contentsOf: fixture.archive.appending(path: "reel.mov")) == content)
        #expect(try names == ["reel.mov"])
    }

    @Test(arguments: InterruptionPoint.allCases) func interruptedUploadCompletesLater(point: InterruptionPoint) async throws {
        let saved = SavedCheckpoints()
        await #expect(throws: SavedCheckpoints.Refused.self) { try await upload(refusing: point, saved) }
        #expect(try names.contains("reel.mov") == (point == .afterPlacing))
        let receipt = try await upload(from: saved.last, saved)
        #expect(receipt.bytes == Int64(content.count))
        #expect(try Data(contentsOf: fixture.archive.appending(path: "reel.mov")) == content)
        #expect(try names == ["reel.mov"])
        // Repeat the attempt, as if the process had exited before the queue stored the completion.
        #expect(try await upload(from: saved.last).bytes == receipt.bytes)
        #expect(try names == ["reel.mov"])
    }

    @Test func discardRemovesOnlyThePartFile() async throws {
        let saved = SavedCheckpoints()
        try await fixture.cut(afterBytes: 50_000)
        await #expect(throws: TransferError.self) { try await upload(as: "2026/reel.mov", saved) }
        #expect(saved.last?.confirmed == 50_000)
        try Data("mine".utf8).write(to: fixture.archive.appending(path: "2026/mine"))
        #expect(try names == ["2026", "2026/.tq-1-0-1.part", "2026/mine"])
        let transport = try #require(fixture.transport as? any PartialDiscarding)
        // The second call must succeed, too, although the part file no longer exists.
        for _ in 1...2 {
            try await transport.discard(try #require(saved.last), at: fixture.endpoint, credentials: fixture.credentials)
            #expect(try names == ["2026", "2026/mine"])
        }
    }

    /// The other queue, for example a suspended member of a fleet, may still have its part file open.
    @Test func uploadRestartsInItsOwnPartFileAfterOtherQueue() async throws {
        let saved = SavedCheckpoints()
        try await fixture.cut(afterBytes: 50_000)
        await #expect(throws: TransferError.self) { try await upload(saved) }
        let error = await #expect(throws: TransferError.self) { try await upload(from: saved.last, partID: "1-0-1-3") }
        #expect(error?.failureClass == .resumeLost)
        #expect(try Data(contentsOf: fixture.archive.appending(path: ".tq-1-0-1.part")).prefix(50_000) == content.prefix(50_000))
        try await upload(partID: "1-0-1-3")
        #expect(try Data(contentsOf: fixture.archive.appending(path: "reel.mov")) == content)
        // The transport leaves the other queue's part file in the folder, because a later call of `discard` removes this file.
        #expect(try names == [".tq-1-0-1.part", "reel.mov"])
    }

    /// The other queue exited after it gave the file its final name, and before it stored the completion.
    @Test func completePartFileOfOtherQueueNeedsNoSecondUpload() async throws {
        let saved = SavedCheckpoints()
        await #expect(throws: SavedCheckpoints.Refused.self) { try await upload(refusing: .afterPlacing, saved) }
        try await upload(from: saved.last, partID: "1-0-1-3")
        #expect(try Data(contentsOf: fixture.archive.appending(path: "reel.mov")) == content)
        #expect(try names == ["reel.mov"])
    }

    @Test(arguments: ["folder://elsewhere/tmp/", "https://localhost/tmp/", "folder://localhost/tmp/?key=hunter2"])
    func attemptsRejectInvalidAddresses(address: String) async throws {
        let attempt = FileAttempt(
            transferID: "1-0-1", endpoint: Endpoint(transport: "folder", address: address),
            source: UploadSource(path: "/dev/null", identity: try SourceIdentity(ofFileAt: FilePath(#filePath))),
            remotePath: try RemotePath("file"), credentials: fixture.credentials, logger: Logger(label: "test"))
        let error = await #expect(throws: TransferError.self) {
            try await fixture.transport.perform(attempt, reporting: SavedCheckpoints().reporter())
        }
        #expect(error?.code == .invalidEndpoint)
        #expect(error?.description.contains("hunter2") == false)
    }
}

/// Saves checkpoints in memory, in place of the queue.
private final class SavedCheckpoints: Sendable {
    struct Refused: Error {}

    private let checkpoints = Mutex<[Checkpoint]>([])

    var last: Checkpoint? { checkpoints.withLock { $0.last } }

    func reporter(refusing isRefused: @escaping @Sendable (Checkpoint) -> Bool = { _ in false }) -> AttemptReporter {
        AttemptReporter(
            progress: { _, _ in },
            checkpoint: { [self] checkpoint in
                guard !isRefused(checkpoint) else { throw Refused() }
                checkpoints.withLock { $0.append(checkpoint) }
            })
    }
}
