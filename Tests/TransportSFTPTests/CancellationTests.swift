import Foundation
import Locking
import Logging
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransportSFTP

@Suite(.timeLimit(.minutes(10)))
struct CancellationTests {
    /// The transport requests the creation of the part file before the server has confirmed the removal of an old part file. So the server may open
    /// the new file after the attempt was cancelled.
    @Test(arguments: [false, true]) func closesPartFileOpenedByCancelledAttempt(opensBeforeCancellation: Bool) async throws {
        let path = FilePath(FileManager.default.temporaryDirectory.appending(path: "sftp-cancelled-\(UUID().uuidString)").path)
        try content(1000).write(to: URL(filePath: path.string))
        defer { try? FileManager.default.removeItem(atPath: path.string) }
        let held = Locked<UInt32?>(nil)
        let peer = ScriptedPeer { request in
            switch request.type {
            case .lstat: return [ScriptedPeer.status(request.id, .noSuchFile)]
            // The attempt is cancelled while it waits for this response.
            case .remove: return []
            case .open where opensBeforeCancellation: return [ScriptedPeer.handle(request.id)]
            case .open:
                held.withLock { $0 = request.id }
                return []
            default:
                let opening = held.withLock { held in
                    defer { held = nil }
                    return held
                }
                return (opening.map { [ScriptedPeer.handle($0)] } ?? []) + [ScriptedPeer.status(request.id, .ok)]
            }
        }
        let transport = SFTPTransport(connector: PeerConnector(peer: peer))
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: .sftp("sftp://me@peer/"),
            source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)), remotePath: try RemotePath("reel.mov"),
            credentials: NoCredentials(), logger: Logger(label: "test"))
        let upload = Task { try await transport.perform(attempt, reporting: Recorder().reporter) }
        while !peer.requests.contains(where: { $0.type == .open }) { await Task.yield() }
        upload.cancel()
        await #expect(throws: CancellationError.self) { try await upload.value }
        _ = try await transport.check(attempt.endpoint, credentials: attempt.credentials)
        while !peer.requests.contains(where: { $0.type == .close }) { await Task.yield() }
        await transport.shutdown()
    }
}
