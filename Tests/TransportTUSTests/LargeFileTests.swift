import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportTUS

/// Files that are large enough for a limit; on the disk they take no room.
@Suite struct LargeFileTests {
    private func source(_ size: Int64, _ file: TemporaryFile) throws -> UploadSource {
        let descriptor = try FileDescriptor.open(file.path, .writeOnly)
        try descriptor.closeAfter { try descriptor.resize(to: size) }
        return try file.source
    }

    /// Beyond 4 GiB, where a number of 32 bits would begin anew.
    @Test func moreThan4GiBArrive() async throws {
        let size: Int64 = 4 << 30 + 1_000_000
        let piece = 64 << 20
        let upload = try TestUpload(size: 1) { request, _ in
            guard request.method == "PATCH" else { return [.created] }
            let pieces = Array(repeating: ServerStep.skip(piece), count: request.contentLength / piece)
            let answer = "HTTP/1.1 204 Scripted\r\nTus-Resumable: 1.0.0\r\nUpload-Offset: \(size)\r\n\r\n"
            return pieces + [.skip(request.contentLength % piece), .raw(answer)]
        }
        #expect(try await upload.run(source: source(size, upload.file)).bytes == size)
        #expect(upload.requests.first?.headers["upload-length"] == "\(size)")
        #expect(upload.methods == ["POST", "PATCH"])
        #expect(upload.requests.last?.contentLength == Int(size))
        #expect(upload.recorder.progress.last?.confirmed == size)
        await upload.end()
    }

    @Test func anUploadGoesOnBeyond4GiB() async throws {
        let size: Int64 = 4 << 30 + 1_000_000
        let upload = try TestUpload(size: 1) { request, _ in
            request.method == "HEAD" ? [.offset(Int(size) - 10, of: Int(size))] : [.accepted(Int(size))]
        }
        _ = try await upload.run(from: upload.checkpoint(), source: source(size, upload.file))
        #expect(upload.requests.last?.headers["upload-offset"] == "\(size - 10)")
        #expect(upload.requests.last?.body == Array(repeating: 0, count: 10))
        await upload.end()
    }

    /// From 64 MiB on a file is sent in parts, unless the endpoint says otherwise.
    @Test(arguments: [(64 << 20 - 1, nil), (64 << 20, "partial")] as [(Int64, String?)])
    func theThresholdForParts(size: Int64, concat: String?) async throws {
        var upload = try TestUpload(size: 1, offers: "creation,concatenation") { _, _ in [.tus(400)] }
        upload.options.parallel = 2
        #expect(await upload.failure(source: try source(size, upload.file))?.failureClass == .permanent)
        #expect(upload.requests.first?.headers["upload-concat"] == concat)
        await upload.end()
    }
}
