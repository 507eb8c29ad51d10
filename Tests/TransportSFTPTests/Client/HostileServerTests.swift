import Foundation
import Logging
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct HostileServerTests {
    private static let size = 300_000
    private static let impossibleSizes: [UInt64] = [1 << 56 + 1, UInt64(Int64.max), .max]
    private static let policies: [OverwritePolicy] = [.never, .skip, .newer, .different, .always, .rename]

    /// - Parameters:
    ///   - reported: The size that the server reports.
    ///   - finalSize: The size that the server reports after all reads; nil for `reported`.
    ///   - name: A path in the local folder.
    ///   - read: Returns the response to a read request with the given ID, offset and length.
    private func download(
        reported: UInt64 = UInt64(size), finalSize: UInt64? = nil, name: FilePath = "file", prepare: (URL) throws -> Void = { _ in },
        _ read: @escaping @Sendable (UInt32, Int, Int) -> [UInt8]
    ) async throws -> (received: Data?, error: TransferError?) {
        let folder = FileManager.default.temporaryDirectory.appending(path: "sftp-hostile-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try prepare(folder)
        let peer = ScriptedPeer { request in
            switch request.type {
            case .stat: [ScriptedPeer.attributes(request.id, size: reported)]
            case .fstat: [ScriptedPeer.attributes(request.id, size: finalSize ?? reported)]
            case .open: [ScriptedPeer.handle(request.id)]
            case .read: [read(request.id, request.range.offset, request.range.count)]
            default: [ScriptedPeer.status(request.id, .ok)]
            }
        }
        let transport = SFTPTransport(connector: PeerConnector(peer: peer))
        let destination = DownloadDestination(
            root: FilePath(folder.path), name: name, partName: name.removingLastComponent().appending(".file.part"))
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: .sftp("sftp://me@peer/"), payload: .download(destination), remotePath: try RemotePath("file"),
            credentials: NoCredentials(), logger: Logger(label: "test"))
        var failure: TransferError?
        do {
            _ = try await transport.perform(attempt, reporting: Recorder().reporter)
        } catch let error as TransferError {
            failure = error
        }
        await transport.shutdown()
        return (try? Data(contentsOf: folder.appending(path: name.string)), failure)
    }

    private static let bytes = [UInt8](content(size))

    private static func slice(_ offset: Int, _ count: Int) -> ArraySlice<UInt8> {
        bytes[min(offset, bytes.count)..<min(offset + count, bytes.count)]
    }

    @Test func requestsBytesMissingFromShortResponses() async throws {
        let (received, error) = try await download { id, offset, count in ScriptedPeer.data(id, Self.slice(offset, max(1, count / 3))) }
        #expect(error == nil && received == content(Self.size))
    }

    @Test func rejectsTooLongResponses() async throws {
        let (received, error) = try await download { id, offset, count in ScriptedPeer.data(id, [UInt8](repeating: 1, count: count + 1)) }
        #expect(error?.failureClass == .protocolViolation && received == nil)
    }

    @Test func rejectsEmptyResponses() async throws {
        let (received, error) = try await download { id, _, _ in ScriptedPeer.data(id, []) }
        #expect(error?.failureClass == .protocolViolation && received == nil)
    }

    @Test func rejectsFileShorterThanReported() async throws {
        let (received, error) = try await download(reported: 1_000_000) { id, offset, count in
            let bytes = Self.slice(offset, count)
            return bytes.isEmpty ? ScriptedPeer.status(id, .endOfFile) : ScriptedPeer.data(id, bytes)
        }
        #expect(error?.failureClass == .resumeLost && received == nil)
    }

    @Test(arguments: [UInt64(size) + 1, UInt64(size) - 1]) func rejectsFileThatChangesSize(size: UInt64) async throws {
        let (received, error) = try await download(finalSize: size) { ScriptedPeer.data($0, Self.slice($1, $2)) }
        #expect(error?.failureClass == .resumeLost && received == nil)
    }

    @Test(arguments: [0, 256 * 1024 + 1025, 0x7FFF_FFFF, 0xFFFF_FFFF]) func rejectsPacketsOfInvalidLength(length: Int) async throws {
        let (received, error) = try await download { _, _, _ in ScriptedPeer.number(length) }
        #expect(error?.failureClass == .protocolViolation && received == nil)
        #expect(error?.message == "peer: The server sent a packet of \(length) bytes; 1 to \(256 * 1024 + 1024) are allowed.")
    }

    @Test func rejectsUnrequestedResponses() async throws {
        let (received, error) = try await download { id, offset, count in ScriptedPeer.data(id &+ 1000, Self.slice(offset, count)) }
        #expect(error?.failureClass == .protocolViolation && received == nil)
        #expect(error?.message == "peer: The server sent a response with an unknown request ID.")
    }

    /// An attacker has replaced a local subfolder or the part file with a link, which the transport must not follow.
    @Test func doesNotFollowPlantedLinks() async throws {
        let outside = FileManager.default.temporaryDirectory.appending(path: "sftp-outside-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: outside, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: outside) }
        let read = { @Sendable (id: UInt32, offset: Int, count: Int) in ScriptedPeer.data(id, Self.slice(offset, count)) }
        let folder = try await download(name: "folder/file") { root in
            try FileManager.default.createSymbolicLink(at: root.appending(path: "folder"), withDestinationURL: outside)
        } _: {
            read($0, $1, $2)
        }
        #expect(folder.error?.failureClass == .permanent)
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside.path).isEmpty)
        let target = outside.appending(path: "theirs")
        try Data("theirs".utf8).write(to: target)
        let throughPartFile = try await download { root in
            try FileManager.default.createSymbolicLink(at: root.appending(path: ".file.part"), withDestinationURL: target)
        } _: {
            read($0, $1, $2)
        }
        #expect(throughPartFile.error != nil || throughPartFile.received == content(Self.size))
        #expect(try Data(contentsOf: target) == Data("theirs".utf8))
    }

    @Test(arguments: Self.impossibleSizes) func rejectsImpossibleSizes(reported: UInt64) async throws {
        let (received, error) = try await download(reported: reported) { id, _, count in
            ScriptedPeer.data(id, [UInt8](repeating: 1, count: count))
        }
        #expect(error?.failureClass == .protocolViolation && received == nil)
        #expect(error?.message.contains("which is implausible") == true, "\(error?.description ?? "")")
    }

    @Test func reportsRejectedReadDuringDownload() async throws {
        let (received, error) = try await download { id, offset, count in
            offset < 100_000 ? ScriptedPeer.data(id, Self.slice(offset, count)) : ScriptedPeer.status(id, .permissionDenied)
        }
        #expect(error?.code == .forbidden && received == nil)
    }

    @Test(arguments: Self.policies, Self.impossibleSizes)
    func uploadFailsCleanlyOnImpossibleSizes(policy: OverwritePolicy, reported: UInt64) async throws {
        let path = FilePath(FileManager.default.temporaryDirectory.appending(path: "sftp-sizes-\(UUID().uuidString)").path)
        try content(1000).write(to: URL(filePath: path.string))
        defer { try? FileManager.default.removeItem(atPath: path.string) }
        let peer = ScriptedPeer { request in
            switch request.type {
            case .open: [ScriptedPeer.handle(request.id)]
            case .lstat, .fstat, .stat: [ScriptedPeer.attributes(request.id, size: reported)]
            default: [ScriptedPeer.status(request.id, .ok)]
            }
        }
        let transport = SFTPTransport(connector: PeerConnector(peer: peer))
        let growth = SourceGrowth(.complete(1000))
        for source in [
            UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)),
            UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path), growth: growth),
        ] {
            for checkpoint in [nil, Checkpoint(data: Data(#"{"part":"cA==","final":"Zg==","stage":"writing"}"#.utf8), confirmed: 10)] {
                let attempt = FileAttempt(
                    transferID: "t-1", endpoint: .sftp("sftp://me@peer/"), source: source, remotePath: try RemotePath("file"),
                    checkpoint: checkpoint, options: AttemptOptions(overwrite: policy), credentials: NoCredentials(),
                    logger: Logger(label: "test"))
                let error = await #expect(throws: TransferError.self) {
                    try await transport.perform(attempt, reporting: Recorder().reporter)
                }
                #expect(error?.message.isEmpty == false)
            }
        }
        await transport.shutdown()
    }
}
