import Foundation
import Locking
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportTUS

@Suite struct MetadataTests {
    private func values(_ header: String?) -> [String: String] {
        var values: [String: String] = [:]
        for pair in (header ?? "").split(separator: ",") {
            let parts = pair.split(separator: " ")
            values[String(parts[0])] =
                parts.count > 1 ? Data(base64Encoded: String(parts[1])).map { String(decoding: $0, as: UTF8.self) } : ""
        }
        return values
    }

    @Test func sendsMetadata() async throws {
        var upload = try TestUpload(size: 1, answers: [[.created], [.accepted(1)]])
        upload.remotePath = "folder/näme,\n .bin"
        upload.options.metadata = ["project": "Ünicode, with\nbreaks", "empty": ""]
        _ = try await upload.run()
        #expect(
            values(upload.requests.first?.headers["upload-metadata"]) == [
                "filename": "näme,\n .bin", "relativePath": "folder/näme,\n .bin", "filetype": "application/octet-stream",
                "transferid": "t-1", "project": "Ünicode, with\nbreaks", "empty": "",
            ])
        await upload.end()
    }

    @Test(arguments: ["", "a b", "a,b", "ä", "a\r\nX: 1", "a\u{7F}", "transferid"]) func rejectsInvalidKeys(key: String) async throws {
        var upload = try TestUpload(size: 1, answers: [])
        upload.options.metadata = [key: "value"]
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent)
        #expect(error?.code == .invalidMetadata)
        #expect(upload.requests.isEmpty)
        let refused = #expect(throws: TransferError.self) { try TUSTransport.validate(upload.options, for: .upload) }
        #expect(refused == error)
        try TUSTransport.validate(upload.options, for: .download)
        await upload.end()
    }
}
