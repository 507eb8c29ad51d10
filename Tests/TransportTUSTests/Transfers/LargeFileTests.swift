import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportTUS

/// Sparse files whose sizes are near or beyond a limit.
@Suite struct LargeFileTests {
    private func source(_ size: Int64, _ file: TemporaryFile) throws -> UploadSource {
        let descriptor = try FileDescriptor.open(file.path, .writeOnly)
        try descriptor.closeAfter { try descriptor.resize(to: size) }
        return try file.source
    }

    /// Beyond 4 GiB, 32-bit numbers would overflow. The first request announces the whole file and is interrupted. The second request sends
    /// the end of the file.
    @Test func uploadsMoreThan4GiB() async throws {
        let size: Int64 = 4 << 30 + 1_000_000
        let upload = try TestUpload(size: 1) { _, number in
            switch number {
            case 0: [.created]
            case 1: [.skip(1 << 20), .reset]
            case 2: [.offset(1 << 20, of: Int(size))]
            // More bytes have arrived since the previous HEAD, as with a slow server.
            case 3: [.offset(Int(size) - 10, of: Int(size))]
            default: [.accepted(Int(size))]
            }
        }
        let source = try source(size, upload.file)
        #expect(await upload.failure(source: source)?.failureClass == .transient)
        #expect(upload.requests[0].headers["upload-length"] == "\(size)")
        #expect(upload.requests[1].contentLength == Int(size))
        #expect(try await upload.run(from: upload.recorder.checkpoints.last, source: source).bytes == size)
        #expect(upload.methods == ["POST", "PATCH", "HEAD", "HEAD", "PATCH"])
        #expect(upload.requests[4].headers["upload-offset"] == "\(size - 10)")
        #expect(upload.requests[4].body == Array(repeating: 0, count: 10))
        #expect(upload.recorder.progress.last?.confirmed == size)
        await upload.end()
    }

    /// Files of 64 MiB or more are sent as segments, unless the endpoint's settings differ.
    @Test(arguments: [(64 << 20 - 1, nil), (64 << 20, "partial")] as [(Int64, String?)])
    func splitsFilesAtOrAboveThreshold(size: Int64, concat: String?) async throws {
        var upload = try TestUpload(size: 1, offers: "creation,concatenation") { _, _ in [.tus(400)] }
        upload.options.segmentsPerFile = 2
        #expect(await upload.failure(source: try source(size, upload.file))?.failureClass == .permanent)
        #expect(upload.requests.first?.headers["upload-concat"] == concat)
        await upload.end()
    }
}
