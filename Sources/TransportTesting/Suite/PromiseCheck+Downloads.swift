import Foundation
import SystemPackage
import TransferCore

/// A remote file with its local destination.
struct Download: Sendable {
    let path: RemotePath
    let destination: DownloadDestination
    let content: Data

    /// The content of the final file; nil if there is no such file.
    var received: Data? { Self.content(destination.path) }
    /// The received content: the content of the part file, or of the final file if the transport has renamed the part file.
    var partialContent: Data? { Self.content(destination.partPath) ?? received }

    /// Whether this machine has at least `count` correct bytes: at the start of the file, or anywhere in the file if the download has several
    /// segments.
    func has(_ count: Int64, inSegments: Bool) -> Bool {
        let partialContent = partialContent ?? Data()
        guard inSegments else { return count <= partialContent.count && partialContent.prefix(Int(count)) == content.prefix(Int(count)) }
        return count <= zip(partialContent, content).count { $0 == $1 }
    }

    func replacing(_ overwrite: OverwritePolicy) -> Download {
        let destination = DownloadDestination(
            root: destination.root, name: destination.name, partName: destination.partName, overwrite: overwrite)
        return Download(path: path, destination: destination, content: content)
    }

    private static func content(_ path: FilePath) -> Data? { try? Data(contentsOf: URL(filePath: path.string)) }
}

extension PromiseCheck where Fixture: DownloadingFixture {
    /// Creates a remote file to download.
    ///
    /// - Parameter folder: The local destination folder below the root.
    func makeDownload(_ size: Int, in folder: FilePath = "") async throws -> Download {
        let name = UUID().uuidString
        let path = try makePath(name)
        let content = Self.content(size, seed: 1)
        try await fixture.provide(content, as: path)
        let root = fixture.folder.appending("downloads")
        try FileManager.default.createDirectory(atPath: root.string, withIntermediateDirectories: true)
        return Download(
            path: path,
            destination: DownloadDestination(root: root, name: folder.appending(name), partName: folder.appending(".\(name).part")),
            content: content)
    }

    @discardableResult
    func receive(
        _ download: Download, at endpoint: Endpoint? = nil, from checkpoint: Checkpoint? = nil,
        _ recorder: AttemptRecorder = AttemptRecorder()
    ) async throws -> TransferReceipt {
        try await start(download, at: endpoint, from: checkpoint, recorder).value(within: deadline, of: self)
    }

    func start(
        _ download: Download, at endpoint: Endpoint? = nil, from checkpoint: Checkpoint? = nil, _ recorder: AttemptRecorder
    ) -> RunningAttempt {
        let attempt = FileAttempt(
            transferID: "conformance-\(download.path)", number: checkpoint == nil ? 1 : 2, endpoint: endpoint ?? fixture.endpoint,
            payload: .download(download.destination), remotePath: download.path, checkpoint: checkpoint,
            options: fixture.options, credentials: fixture.credentials, logger: Self.logger)
        let transport = fixture.transport
        return RunningAttempt(task: Task { try await transport.perform(attempt, reporting: recorder.reporter) })
    }

    func requireReceived(_ download: Download, _ situation: String) throws {
        let received = download.received
        try require(
            received?.count == download.content.count,
            "\(situation), the file has \(received?.count ?? 0) of \(download.content.count) bytes.")
        guard let received, received != download.content else { return }
        let difference = zip(download.content, received).enumerated().first { $0.element.0 != $0.element.1 }?.offset ?? 0
        throw violation("\(situation), the byte at \(difference) differs.")
    }

    // MARK: Content

    func downloadsArriveIntact() async throws {
        let limits = [64 * 1024, 1024 * 1024]
        for size in [0, 1] + limits.flatMap({ [$0 - 1, $0, $0 + 1] }) + [Self.largeSize] {
            let download = try await makeDownload(size, in: "some/folder")
            try await receive(download)
            try requireReceived(download, "For a file of \(size) bytes")
        }
    }

    func nameComesLast() async throws {
        let download = try await makeDownload(Self.largeSize)
        let recorder = AttemptRecorder(allowance: 100_000)
        let attempt = start(download, recorder)
        try await attempt.waitUntilHeld(by: recorder, within: deadline, of: self)
        try require(download.received == nil, "Half-way, a file with the final name exists.")
        recorder.allowAll()
        _ = try await attempt.value(within: deadline, of: self)
        try requireReceived(download, "At the end")
    }

    func downloadReceiptHasSize() async throws {
        for size in [0, 1, 100_000] {
            let receipt = try await receive(makeDownload(size))
            try require(receipt.bytes == size, "For a file of \(size) bytes, the receipt contains the size \(receipt.bytes).")
        }
    }

    func reportedSizeIsCorrect() async throws {
        for size in [0, 1, Self.largeSize] {
            let recorder = AttemptRecorder()
            try await receive(makeDownload(size), recorder)
            let wrong = recorder.totals.first { $0 != size }
            try require(wrong == nil, "For a file of \(size) bytes, the size \(wrong ?? 0) was reported.")
        }
    }

    func missingFileIsPermanent() async throws {
        let download = try await makeDownload(0)
        let missing = Download(path: try makePath("missing-\(UUID().uuidString)"), destination: download.destination, content: Data())
        try await expect(.permanent, "When there was no such file") { try await receive(missing) }
        try require(missing.received == nil, "When there was no such file, a local file was created.")
    }

    // MARK: The existing file

    func existingFileIsKeptByDefault() async throws {
        let existing = Data("mine".utf8)
        let download = try await makeDownload(Self.largeSize)
        try existing.write(to: URL(filePath: download.destination.path.string))
        try await expect(.permanent, "When the file existed") { try await receive(download) }
        try require(download.received == existing, "The existing file was replaced.")

        let late = try await makeDownload(Self.largeSize)
        let recorder = AttemptRecorder(allowance: 100_000)
        let attempt = start(late, recorder)
        try await attempt.waitUntilHeld(by: recorder, within: deadline, of: self)
        try existing.write(to: URL(filePath: late.destination.path.string))
        recorder.allowAll()
        try await expect(.permanent, "When the file appeared during the attempt") { try await attempt.value(within: deadline, of: self) }
        try require(late.received == existing, "The file that appeared during the attempt was replaced.")
    }

    func replacesIfConfigured() async throws {
        let download = try await makeDownload(100_000).replacing(.always)
        try Data("mine".utf8).write(to: URL(filePath: download.destination.path.string))
        try await receive(download)
        try requireReceived(download, "After the download replaced a file")
    }

    func staysInFolder() async throws {
        let outside = fixture.folder.appending("outside-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: outside.string, withIntermediateDirectories: false)
        let link = "link-\(UUID().uuidString)"
        let download = try await makeDownload(100_000, in: FilePath(link)).replacing(.always)
        try FileManager.default.createSymbolicLink(
            atPath: download.destination.root.appending(link).string, withDestinationPath: outside.string)
        try await expect(.permanent, "With a link in the path") { try await receive(download) }
        try require(
            try FileManager.default.contentsOfDirectory(atPath: outside.string).isEmpty,
            "With a link in the path, content was written outside of the folder.")

        let target = outside.appending("target")
        try Data("mine".utf8).write(to: URL(filePath: target.string))
        let other = try await makeDownload(100_000)
        try FileManager.default.createSymbolicLink(atPath: other.destination.partPath.string, withDestinationPath: target.string)
        // The attempt can succeed or fail, but must not write through the link.
        _ = try? await receive(other)
        try require(
            try Data(contentsOf: URL(filePath: target.string)) == Data("mine".utf8),
            "With a link in place of the part file, content was written outside of the folder.")
    }

    // MARK: The endpoint

    func refusedDownloadIsUnreachable() async throws {
        let download = try await makeDownload(1000)
        try await expect(.unreachable, "When the connection was refused") { try await receive(download, at: fixture.unreachableEndpoint) }
        try require(download.partialContent == nil, "When the connection was refused, a file was created.")
    }
}
