import Foundation
import Logging
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransportSFTP

/// The errors of failed uploads, which name the part file that stays on the server.
@Suite(.timeLimit(.minutes(10)))
struct RemainingPartTests {
    private static let location = "unfinished part file at peer: /.tq-t-1.part"

    /// Attempts to upload 1,000 bytes. Returns the error and the checkpoints of the attempt.
    private func upload(
        _ connector: any SFTPConnector, from checkpoint: Checkpoint? = nil
    ) async throws -> (error: TransferError?, checkpoints: [Checkpoint]) {
        let path = FilePath(FileManager.default.temporaryDirectory.appending(path: "sftp-part-\(UUID().uuidString)").path)
        try content(1000).write(to: URL(filePath: path.string))
        defer { try? FileManager.default.removeItem(atPath: path.string) }
        let transport = SFTPTransport(connector: connector)
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: .sftp("sftp://me@peer/"),
            source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)), remotePath: try RemotePath("reel.mov"),
            checkpoint: checkpoint, credentials: NoCredentials(), logger: Logger(label: "test"))
        let recorder = Recorder()
        var failure: TransferError?
        do {
            _ = try await transport.perform(attempt, reporting: recorder.reporter)
        } catch let error as TransferError {
            failure = error
        }
        await transport.shutdown()
        return (failure, recorder.checkpoints)
    }

    private func checkpoint(part: String = "/.tq-t-1.part") throws -> Checkpoint {
        let stored = UploadCheckpoint(part: Array(part.utf8), final: Array("/reel.mov".utf8), stage: .writing)
        return Checkpoint(data: try JSONEncoder().encode(stored), confirmed: 100)
    }

    /// Returns a connector whose server responds to requests with the given statuses.
    private func connector(_ status: @escaping @Sendable (PacketType?) -> Status.Code) -> PeerConnector {
        PeerConnector(
            peer: ScriptedPeer { request in
                switch request.type {
                case .lstat: [ScriptedPeer.status(request.id, .noSuchFile)]
                case .fstat: [ScriptedPeer.attributes(request.id, size: 1000)]
                case .open where status(.open) == .ok: [ScriptedPeer.handle(request.id)]
                default: [ScriptedPeer.status(request.id, status(request.type))]
                }
            })
    }

    /// The attempt fails before it has a connection, for example because the connection breaks during the key exchange.
    @Test(arguments: [FailureClass.transient, .unreachable, .remoteFull, .unsupported, .permanent, .protocolViolation, .sourceLost])
    func namesPartFileOfCheckpoint(failureClass: FailureClass) async throws {
        let connector = TestConnector { _ in throw TransferError(failureClass, .connectionLost, "The connection broke.", cause: "cut") }
        let error = try await upload(connector, from: checkpoint()).error
        #expect(error?.failureClass == failureClass && error?.cause == "cut; \(Self.location)")
    }

    /// The upload restarts in a new part file, or the account waits.
    @Test(arguments: [FailureClass.resumeLost, .sourceChanged, .credentials])
    func namesNoPartFileIfSessionDoesNotFail(failureClass: FailureClass) async throws {
        let connector = TestConnector { _ in throw TransferError(failureClass, .connectionLost, "The connection broke.") }
        let error = try await upload(connector, from: checkpoint()).error
        #expect(error?.failureClass == failureClass && error?.cause == nil)
    }

    @Test func namesNoPartFileWithoutPartFile() async throws {
        let connector = TestConnector { _ in throw TransferError(.transient, .connectionLost, "The connection broke.") }
        let withoutPart = try checkpoint(part: "/reel.mov")
        for known in [nil, withoutPart] {
            let error = try await upload(connector, from: known).error
            #expect(error?.failureClass == .transient && error?.cause == nil)
        }
    }

    @Test(arguments: [
        (Status.Code.writeProtected, FailureClass.permanent), (.badMessage, .protocolViolation), (.noSpace, .remoteFull),
    ])
    func namesPartFileThatCannotBeWritten(code: Status.Code, failureClass: FailureClass) async throws {
        let error = try await upload(connector { $0 == .write ? code : .ok }).error
        #expect(error?.failureClass == failureClass && error?.cause == Self.location, "\(error?.description ?? "")")
    }

    /// The checkpoint was saved before the part file was created, so it does not prove that the part file exists.
    @Test func namesNoPartFileThatCannotBeCreated() async throws {
        let refuse: @Sendable (PacketType?) -> Status.Code = { $0 == .open || $0 == .remove ? .permissionDenied : .ok }
        let first = try await upload(connector(refuse))
        let stored = try #require(first.checkpoints.last)
        let second = try await upload(connector(refuse), from: stored)
        for error in [first.error, second.error] {
            #expect(error?.failureClass == .permanent && error?.code == .forbidden && error?.cause == nil, "\(error?.description ?? "")")
        }
    }
}
