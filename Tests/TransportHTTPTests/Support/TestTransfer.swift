import CurlEngine
import Foundation
import Logging
import ScriptedHTTP
import SystemPackage
import TransferCore
import TransportHTTP
import TransportSupport

/// A transfer of one file to or from a scripted server.
struct TestTransfer {
    let transport: HTTPTransport
    let server: ScriptedServer
    let folder: FilePath
    let recorder: Recorder
    /// The file to upload; nil for a download, and for an upload of ``source`` or ``form``.
    let file: TemporaryFile?
    var endpoint: Endpoint
    var credentials = FixedCredentials()
    var options = AttemptOptions()
    var remotePath = "a.bin"
    /// The local name of a download.
    var localName: FilePath = "file"
    var overwrite = OverwritePolicy.never
    /// The remote path instead of ``remotePath``, for names that are not UTF-8.
    var remoteBytes: [UInt8]?
    var number = 1
    var session = "s-1"
    /// The source to upload instead of ``file``.
    var source: UploadSource?
    /// The form to upload instead of ``file`` and ``source``.
    var form: UploadForm?

    /// - Parameters:
    ///   - mode: `put`, `post`, `form` or `get`.
    ///   - size: The size of ``file`` in bytes; nil for no file.
    ///   - wait: Waits for the given duration.
    init(
        _ mode: String, _ path: String = "/files/", size: Int? = nil, recorder: Recorder = Recorder(),
        headers: HeaderHook? = nil, disks: DiskThreads = DiskThreads(limit: 4),
        wait: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) },
        _ script: @escaping ScriptedServer.Script
    ) throws {
        transport = HTTPTransport(headers: headers, disks: disks, wait: wait)
        self.recorder = recorder
        server = try ScriptedServer(script)
        file = try size.map { try TemporaryFile(size: $0) }
        endpoint = .http("http+\(mode)://127.0.0.1:\(server.port)\(path)")
        folder = FilePath(FileManager.default.temporaryDirectory.path).appending("http-transfer-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    }

    init(
        _ mode: String, _ path: String = "/files/", size: Int? = nil, recorder: Recorder = Recorder(),
        wait: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }, answers: [[ServerStep]]
    ) throws {
        try self.init(mode, path, size: size, recorder: recorder, wait: wait) { _, number in
            number < answers.count ? answers[number] : [.silence]
        }
    }

    func run(from checkpoint: Checkpoint? = nil) async throws -> TransferReceipt {
        let destination = DownloadDestination(root: folder, name: localName, partName: ".file.part", overwrite: overwrite)
        let payload =
            try form.map { .form($0) } ?? (source ?? file?.source).map { FileAttempt.Payload.upload($0) } ?? .download(destination)
        let attempt = FileAttempt(
            transferID: "t-1", number: number, endpoint: endpoint, payload: payload,
            remotePath: try RemotePath(bytes: remoteBytes ?? Array(remotePath.utf8)),
            checkpoint: checkpoint, options: options,
            origin: AttemptOrigin(session: session, item: 3, context: Data("{}".utf8), account: "bucket"),
            credentials: credentials, logger: Logger(label: "test"))
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

    /// The content of the downloaded file, or of its part file.
    var content: String? {
        for name in [".file.part", "file"] {
            if let data = FileManager.default.contents(atPath: folder.appending(name).string) {
                return String(decoding: data, as: UTF8.self)
            }
        }
        return nil
    }

    func end() async {
        await transport.shutdown()
        server.stop()
        try? FileManager.default.removeItem(atPath: folder.string)
    }
}
