import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportHTTP

@Suite struct PartFilePermissionTests {
    private func mode(_ path: FilePath) throws -> Int {
        try #require(FileManager.default.attributesOfItem(atPath: path.string)[.posixPermissions] as? Int)
    }

    @Test(arguments: [OverwritePolicy.never, .always, .rename]) func onlyUserCanReadPartFile(overwrite: OverwritePolicy) async throws {
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let mayEnd = DispatchSemaphore(value: 0)
        var transfer = try TestTransfer("get") { _, _ in
            [
                .raw("HTTP/1.1 200 Scripted\r\nContent-Length: 10\r\n\r\n01234"),
                .call {
                    arrival.finish()
                    mayEnd.wait()
                }, .raw("56789"),
            ]
        }
        transfer.overwrite = overwrite
        let task = Task { [transfer] in try await transfer.run() }
        for await _ in arrived {}
        for await count in transfer.recorder.sentBytes.stream where count > 0 { break }
        #expect(try mode(transfer.folder.appending(".file.part")) == 0o600)
        mayEnd.signal()
        _ = try await task.value
        let usual = transfer.folder.appending("usual")
        try FileDescriptor.open(usual, .writeOnly, options: .create, permissions: FilePermissions(rawValue: 0o666)).close()
        #expect(try mode(transfer.folder.appending("file")) == mode(usual))
        await transfer.end()
    }
}
