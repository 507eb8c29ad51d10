import Foundation
import Logging
import ScriptedHTTP
import SystemPackage
import TransferCore
import TransportSupport
import TransportTUS

/// A download of one file from a scripted server.
struct TestDownload {
    let transport: TUSTransport
    let server: ScriptedServer
    let folder: FilePath
    let recorder = Recorder()
    var endpoint: Endpoint
    var options = AttemptOptions()
    var remotePath = "a.txt"
    var overwrite = OverwritePolicy.never

    init(
        disks: DiskThreads = DiskThreads(limit: 4), headLimit: @escaping @Sendable (_ number: Int) -> Int? = { _ in nil },
        _ script: @escaping ScriptedServer.Script
    ) throws {
        transport = TUSTransport(disks: disks, now: { .now })
        server = try ScriptedServer(headLimit: headLimit, script)
        endpoint = .tus(server.url(), credentials: [])
        folder = FilePath(FileManager.default.temporaryDirectory.path).appending("tus-download-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    }

    init(answers: [[ServerStep]]) throws {
        try self.init { _, number in number < answers.count ? answers[number] : [.silence] }
    }

    func run(from checkpoint: Checkpoint? = nil) async throws -> TransferReceipt {
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: endpoint,
            payload: .download(DownloadDestination(root: folder, name: "file", partName: ".file.part", overwrite: overwrite)),
            remotePath: try RemotePath(remotePath), checkpoint: checkpoint, options: options,
            credentials: FixedCredentials(secrets: ["TOKEN": "hunter2"]),
            logger: Logger(label: "test"))
        return try await transport.perform(attempt, reporting: recorder.reporter())
    }

    /// Runs one attempt, and returns its error. Returns nil if the attempt succeeds or fails with an error of a different type.
    func failure(from checkpoint: Checkpoint? = nil) async -> TransferError? {
        do {
            _ = try await run(from: checkpoint)
            return nil
        } catch {
            return error as? TransferError
        }
    }

    /// The content of the part file, or of the complete file if there is no part file.
    var content: String? { text(".file.part", "file") }

    var partContent: String? { text(".file.part") }

    private func text(_ names: String...) -> String? {
        for name in names {
            if let data = FileManager.default.contents(atPath: folder.appending(name).string) {
                return String(decoding: data, as: UTF8.self)
            }
        }
        return nil
    }

    var isInPlace: Bool { FileManager.default.fileExists(atPath: folder.appending("file").string) }

    func put(_ text: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: folder.appending("file").string))
    }

    func end() async {
        await transport.shutdown()
        server.stop()
        try? FileManager.default.removeItem(atPath: folder.string)
    }
}
