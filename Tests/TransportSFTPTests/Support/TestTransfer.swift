import Foundation
import Logging
import SystemPackage
import TransferCore
import TransportSFTP
import TransportSupport

/// Performs attempts to upload or download a file, with the server of a fixture.
struct TestTransfer {
    let fixture: ProcessFixture
    var name = "a.bin"
    var options = AttemptOptions()
    var settings: [String: String] = [:]
    /// The ID for the name of the part file; nil for the ID of the transfer.
    var partID: String?
    var root: FilePath
    let recorder = Recorder()

    init(_ fixture: ProcessFixture, _ name: String = "a.bin", overwrite: OverwritePolicy = .never) {
        self.fixture = fixture
        root = fixture.folder
        self.name = name
        options.overwrite = overwrite
    }

    func source(_ content: Data) throws -> UploadSource {
        let path = fixture.folder.appending(UUID().uuidString)
        try content.write(to: URL(fileURLWithPath: path.string))
        return UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))
    }

    func upload(
        _ source: UploadSource, from checkpoint: Checkpoint? = nil, reporting reporter: AttemptReporter? = nil
    ) async throws -> TransferReceipt {
        try await run(.upload(source), from: checkpoint, reporter)
    }

    func download(from checkpoint: Checkpoint? = nil, reporting reporter: AttemptReporter? = nil) async throws -> TransferReceipt {
        try await run(.download(destination), from: checkpoint, reporter)
    }

    var destination: DownloadDestination {
        DownloadDestination(root: root, name: "received", partName: ".received.part", overwrite: options.overwrite)
    }

    var receivedPath: String { destination.path.string }
    var received: Data? { try? Data(contentsOf: URL(fileURLWithPath: receivedPath)) }

    private func run(
        _ payload: FileAttempt.Payload, from checkpoint: Checkpoint?, _ reporter: AttemptReporter? = nil
    ) async throws -> TransferReceipt {
        var endpoint = fixture.endpoint
        endpoint.settings = settings
        var attempt = FileAttempt(
            transferID: "t-1", endpoint: endpoint, payload: payload, remotePath: try RemotePath(name), checkpoint: checkpoint,
            options: options, credentials: fixture.credentials, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        if let partID { attempt.partID = partID }
        return try await fixture.transport.perform(attempt, reporting: reporter ?? recorder.reporter)
    }

    /// Returns the `TransferError` that the closure throws, or nil if it succeeds or throws a different error.
    func failure(_ body: () async throws -> TransferReceipt) async -> TransferError? {
        do {
            _ = try await body()
            return nil
        } catch {
            return error as? TransferError
        }
    }

    // MARK: Files on the server

    var stored: Data? { fixture.onServer(name) }
    var storedPartFile: Data? { fixture.onServer(".tq-t-1.part") }
}

extension ProcessFixture {
    static func with(
        cutting direction: CutPlan.Direction = .fromClient, options: [String] = [], commands: (any CommandRunner)? = nil,
        disks: DiskThreads = DiskThreads(limit: 4), in parent: URL = FileManager.default.temporaryDirectory,
        _ body: (ProcessFixture) async throws -> Void
    ) async throws {
        let fixture = try ProcessFixture(cutting: direction, options: options, commands: commands, disks: disks, in: parent)
        do {
            try await body(fixture)
        } catch {
            await fixture.close()
            throw error
        }
        await fixture.close()
    }

    func makeFolder(_ folder: FilePath) throws {
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    }

    func onServer(_ name: String) -> Data? { try? Data(contentsOf: server.appending(path: name)) }

    var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: server.path)) ?? []).sorted() }

    func put(_ content: Data, _ name: String, modified seconds: Int = 1_700_000_000) throws {
        let file = server.appending(path: name)
        try content.write(to: file)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: Double(seconds))], ofItemAtPath: file.path)
    }
}
