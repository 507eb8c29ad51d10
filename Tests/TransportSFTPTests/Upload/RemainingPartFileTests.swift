import Foundation
import ScriptedSFTP
import Testing
import TransferCore
import TransportSFTP

/// The error of a failed upload names the part file that stays on the server.
@Suite(.timeLimit(.minutes(10)))
struct RemainingPartFileTests {
    private static let location = "unfinished part file at peer: /.tq-t-1.part"

    private func checkpoint(part: String = "/.tq-t-1.part") throws -> Checkpoint {
        let stored = UploadCheckpoint(part: Array(part.utf8), final: Array("/reel.mov".utf8), stage: .writing)
        return Checkpoint(data: try JSONEncoder().encode(stored), confirmed: 100)
    }

    /// Returns a connector whose server responds with the given statuses, except to requests for attributes. A nil status means no response.
    private func connector(_ status: @escaping @Sendable (PacketType?) -> Status.Code?) -> PeerConnector {
        PeerConnector(
            peer: ScriptedPeer { request in
                switch request.type {
                case .lstat: [ScriptedPeer.status(request.id, .noSuchFile)]
                case .fstat: [ScriptedPeer.attributes(request.id, size: 1000)]
                case .open where status(.open) == .ok: [ScriptedPeer.handle(request.id)]
                default: status(request.type).map { [ScriptedPeer.status(request.id, $0)] } ?? []
                }
            })
    }

    /// The attempt fails before it has a connection, for example because the connection breaks during the key exchange.
    @Test(arguments: [FailureClass.transient, .unreachable, .remoteFull, .unsupported, .permanent, .protocolViolation, .sourceLost])
    func namesPartFileOfCheckpoint(failureClass: FailureClass) async throws {
        let connector = TestConnector { _ in throw TransferError(failureClass, .connectionLost, "The connection broke.", cause: "cut") }
        let error = try await connector.upload(1000, from: checkpoint())
        #expect(error?.failureClass == failureClass && error?.cause == "cut; \(Self.location)")
    }

    /// In these cases, the upload restarts in a new part file, or the session waits because its account is blocked.
    @Test(arguments: [FailureClass.resumeLost, .sourceChanged, .credentials])
    func namesNoPartFileIfSessionDoesNotFail(failureClass: FailureClass) async throws {
        let connector = TestConnector { _ in throw TransferError(failureClass, .connectionLost, "The connection broke.") }
        let error = try await connector.upload(1000, from: checkpoint())
        #expect(error?.failureClass == failureClass && error?.cause == nil)
    }

    @Test func namesNoPartFileIfNoneExists() async throws {
        let connector = TestConnector { _ in throw TransferError(.transient, .connectionLost, "The connection broke.") }
        let withoutPartFile = try checkpoint(part: "/reel.mov")
        for checkpoint in [nil, withoutPartFile] {
            let error = try await connector.upload(1000, from: checkpoint)
            #expect(error?.failureClass == .transient && error?.cause == nil)
        }
    }

    @Test(arguments: [
        (Status.Code.writeProtected, FailureClass.permanent), (.badMessage, .protocolViolation), (.noSpace, .remoteFull),
    ])
    func namesPartFileThatCannotBeWritten(code: Status.Code, failureClass: FailureClass) async throws {
        let error = try await connector { $0 == .write ? code : .ok }.upload(1000)
        #expect(error?.failureClass == failureClass && error?.cause == Self.location, "\(error?.description ?? "")")
    }

    /// The checkpoint was saved before the part file was created, so it does not prove that the part file exists.
    @Test func namesNoPartFileThatCannotBeCreated() async throws {
        let refuse: @Sendable (PacketType?) -> Status.Code? = { $0 == .open || $0 == .remove ? .permissionDenied : .ok }
        let recorder = Recorder()
        let first = try await connector(refuse).upload(1000, recording: recorder)
        let stored = try #require(recorder.checkpoints.last)
        let second = try await connector(refuse).upload(1000, from: stored)
        for error in [first, second] {
            #expect(error?.failureClass == .permanent && error?.code == .forbidden && error?.cause == nil, "\(error?.description ?? "")")
        }
    }

    /// The queue cancels a stalled attempt, and then creates the error. So the transport reports the part file to the queue.
    @Test func reportsPartFileOfCancelledUpload() async throws {
        let (writes, write) = AsyncStream.makeStream(of: Void.self)
        let silent = connector { type in
            guard type == .write else { return .ok }
            write.yield()
            return nil
        }
        let recorder = Recorder()
        let upload = Task { try await silent.upload(1000, recording: recorder) }
        for await _ in writes { break }
        #expect(recorder.remainingPartFiles == [])
        upload.cancel()
        await #expect(throws: CancellationError.self) { try await upload.value }
        #expect(recorder.remainingPartFiles == [Self.location])
    }

    /// The stalled attempt is cancelled before it has a connection.
    @Test func reportsPartFileOfCheckpointAfterCancellation() async throws {
        let (connections, connection) = AsyncStream.makeStream(of: Void.self)
        let silent = TestConnector { _ in
            connection.yield()
            try await Task.sleep(for: .seconds(3_600))
            throw CancellationError()
        }
        let (recorder, stored) = (Recorder(), try checkpoint())
        let upload = Task { try await silent.upload(1000, from: stored, recording: recorder) }
        for await _ in connections { break }
        upload.cancel()
        await #expect(throws: CancellationError.self) { try await upload.value }
        #expect(recorder.remainingPartFiles == [Self.location])
    }
}
