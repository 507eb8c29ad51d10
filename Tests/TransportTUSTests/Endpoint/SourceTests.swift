import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportTUS

@Suite struct SourceTests {
    @Test func detectsChangeBeforeOpening() async throws {
        let upload = try TestUpload(size: 10, answers: [])
        let source = try upload.file.source
        try upload.file.write([1, 2, 3])
        let error = await upload.failure(source: source)
        #expect(error?.failureClass == .sourceChanged)
        #expect(error?.message.contains("its size was 10 bytes and is now 3") == true)
        #expect(upload.requests.isEmpty)
        await upload.end()
    }

    /// If the app has set the upload's URL, the upload belongs to the app, so the client does not remove the upload.
    @Test(arguments: [false, true]) func detectsChangeDuringUpload(hasURLFromApp: Bool) async throws {
        let file = Locked<TemporaryFile?>(nil)
        var upload = try TestUpload(size: 10) { request, _ in
            switch request.method {
            case "POST": return [.created]
            case "HEAD": return [.offset(0)]
            case "PATCH": return [.read(nil), .call { try? file.withLock { $0 }?.write([UInt8](repeating: 1, count: 11)) }, .accepted(10)]
            default: return [.tus(204)]
            }
        }
        if hasURLFromApp { upload.options.uploadURL = upload.server.url("/elsewhere/7") }
        file.withLock { $0 = upload.file }
        #expect(await upload.failure()?.failureClass == .sourceChanged)
        #expect(upload.methods.contains("DELETE") != hasURLFromApp)
        await upload.end()
    }

    @Test func reportsMissingFile() async throws {
        let upload = try TestUpload(size: 10, answers: [])
        let identity = try upload.file.source.identity
        let error = await upload.failure(source: UploadSource(path: "/nonexistent/file", identity: identity))
        #expect(error?.failureClass == .sourceLost)
        #expect(error?.code == .noSuchFile)
        await upload.end()
    }
}
