import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportHTTP

@Suite struct AdditionalFileTests {
    /// The text of each part of a form, including the part's headers.
    private static func parts(_ request: ReceivedRequest) -> [String] {
        let boundary = request.headers["content-type"]?.split(separator: "=").last ?? ""
        return String(decoding: request.body, as: UTF8.self).components(separatedBy: "--\(boundary)").dropFirst().dropLast()
    }

    private static func additionalFile(_ transfer: TestTransfer, _ name: String, _ text: String) throws -> FilePath {
        let path = transfer.folder.appending(name)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path.string))
        return path
    }

    @Test func additionalFilesPrecedeUploadedFile() async throws {
        var transfer = try TestTransfer("form", size: 3, answers: [[.answer(200)]])
        let sheet = try Self.additionalFile(transfer, "sheet.csv", "a,b")
        _ = try Self.additionalFile(transfer, "a.bin.jpg", "picture")
        let empty = try Self.additionalFile(transfer, "empty", "")
        transfer.endpoint.settings = ["file.picture": "\(transfer.folder)/{name}.jpg", "field.project": "blue"]
        transfer.options.settings = ["file.sheets": "\(sheet)\n\(empty)"]
        let receipt = try await transfer.run()
        #expect(receipt.bytes == 3)
        let request = try #require(transfer.server.requests.first)
        #expect(
            Self.parts(request) == [
                "\r\nContent-Disposition: form-data; name=\"project\"\r\n\r\nblue\r\n",
                "\r\nContent-Disposition: form-data; name=\"picture\"; filename=\"a.bin.jpg\"\r\nContent-Type: image/jpeg\r\n\r\npicture\r\n",
                "\r\nContent-Disposition: form-data; name=\"sheets\"; filename=\"sheet.csv\"\r\nContent-Type: text/csv\r\n\r\na,b\r\n",
                "\r\nContent-Disposition: form-data; name=\"sheets\"; filename=\"empty\"\r\n"
                    + "Content-Type: application/octet-stream\r\n\r\n\r\n",
                "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bin\"\r\n"
                    + "Content-Type: application/octet-stream\r\n\r\n\u{0}\u{1}\u{2}\r\n",
            ])
        #expect(request.headers["content-length"] == "\(request.body.count)")
        #expect(request.headers["transfer-encoding"] == nil)
        #expect(transfer.recorder.progress.allSatisfy { $0.sent <= 3 })
        await transfer.end()
    }

    @Test func findsAdditionalFileNextToSource() async throws {
        var transfer = try TestTransfer("form", size: 3, answers: [[.answer(200)]])
        let source = try #require(transfer.file?.path)
        let sidecar = FilePath("\(source).xmp")
        try Data("<x/>".utf8).write(to: URL(fileURLWithPath: sidecar.string))
        defer { try? FileManager.default.removeItem(atPath: sidecar.string) }
        transfer.endpoint.settings = ["file.sidecar": "{source}.xmp"]
        _ = try await transfer.run()
        let parts = Self.parts(try #require(transfer.server.requests.first))
        #expect(parts.first?.hasSuffix("\r\n\r\n<x/>\r\n") == true)
        await transfer.end()
    }

    @Test func errorNamesMissingAdditionalFile() async throws {
        var transfer = try TestTransfer("form", size: 3, answers: [])
        transfer.endpoint.settings = ["file.x": "\(transfer.folder)/missing"]
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .sourceLost)
        #expect(failure?.message.contains("missing") == true)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }

    @Test func detectsChangedAdditionalFile() async throws {
        let changes = Locked<@Sendable () -> Void>({})
        var transfer = try TestTransfer("form", size: 3, answers: [[.read(nil), .call { changes.withLock { $0 }() }, .answer(200)]])
        let path = try Self.additionalFile(transfer, "x", "before")
        changes.withLock { $0 = { try? Data("after, and longer".utf8).write(to: URL(fileURLWithPath: path.string)) } }
        transfer.endpoint.settings = ["file.x": path.string]
        let failure = await transfer.failure()
        #expect(failure?.failureClass == .sourceChanged)
        #expect(failure?.message.contains(path.string) == true)
        await transfer.end()
    }

    @Test func rejectsAdditionalFilesForPUT() async throws {
        var transfer = try TestTransfer("put", size: 3, answers: [])
        transfer.endpoint.settings = ["file.x": "/x"]
        #expect(await transfer.failure()?.failureClass == .unsupported)
        #expect(transfer.server.connectionCount == 0)
        await transfer.end()
    }
}
