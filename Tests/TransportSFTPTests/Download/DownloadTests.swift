import Foundation
import Glibc
import Testing
import TransferCore

@Suite struct DownloadTests {
    @Test func keepsModificationTime() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            try fixture.put(content(100_000), "a.bin", modified: 1_600_000_000)
            let receipt = try await transfer.download()
            #expect(receipt.bytes == 100_000 && receipt.remoteURL == "sftp://pipe\(fixture.server.path)/a.bin")
            #expect(transfer.received == content(100_000))
            let found = try FileManager.default.attributesOfItem(atPath: transfer.receivedPath)
            #expect((found[.modificationDate] as? Date)?.timeIntervalSince1970 == 1_600_000_000)
        }
    }

    @Test func keepsFileWithSameSizeAndTime() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture, overwrite: .different)
            try fixture.put(content(1000), "a.bin", modified: 1_600_000_000)
            _ = try await transfer.download()
            try fixture.put(content(1000, seed: 2), "a.bin", modified: 1_600_000_000)
            #expect(try await transfer.download().bytes == 1000)
            #expect(transfer.received == content(1000))
        }
    }

    @Test func rejectsRemotePathsThatAreNotFiles() async throws {
        try await ProcessFixture.with { fixture in
            try FileManager.default.createDirectory(at: fixture.server.appending(path: "folder"), withIntermediateDirectories: true)
            let hasFIFO = unsafe mkfifo(fixture.server.appending(path: "fifo").path, 0o600) == 0
            #expect(hasFIFO)
            for name in ["folder", "fifo"] {
                let transfer = TestTransfer(fixture, name)
                #expect(await transfer.failure { try await transfer.download() }?.failureClass == .permanent, "\(name)")
            }
            let missing = TestTransfer(fixture, "missing")
            #expect(await missing.failure { try await missing.download() }?.code == .noSuchRemoteFile)
        }
    }

    @Test func resumesAfterServerDied() async throws {
        try await ProcessFixture.with(cutting: .fromServer) { fixture in
            let transfer = TestTransfer(fixture)
            try fixture.put(content(3_000_000), "a.bin")
            try await fixture.cut(afterBytes: 1_000_000)
            let error = await transfer.failure { try await transfer.download() }
            #expect(error?.failureClass == .transient && error?.code == .connectionLost)
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            #expect(checkpoint.confirmed > 500_000)
            let before = transfer.recorder.sent.count
            _ = try await transfer.download(from: checkpoint)
            #expect(transfer.recorder.sent.dropFirst(before).first == checkpoint.confirmed)
            #expect(transfer.received == content(3_000_000))
        }
    }
}
