import Foundation
import SystemPackage
import Testing
import TransferCore

/// Times and permissions go along if that is wanted.
@Suite struct AttributeTests {
    private func keeping(_ fixture: ProcessFixture) -> TestTransfer {
        var transfer = TestTransfer(fixture, overwrite: .always)
        transfer.settings = ["keepTimes": "true", "keepModes": "true"]
        return transfer
    }

    private func set(_ file: String, mode: Int, time: Int = 1_500_000_000) throws {
        try FileManager.default.setAttributes(
            [.posixPermissions: mode, .modificationDate: Date(timeIntervalSince1970: Double(time))], ofItemAtPath: file)
    }

    private func attributes(_ file: String) throws -> (mode: Int?, time: Int?) {
        let found = try FileManager.default.attributesOfItem(atPath: file)
        return (found[.posixPermissions] as? Int, (found[.modificationDate] as? Date).map { Int($0.timeIntervalSince1970) })
    }

    /// Also those of files that nobody may write. What lets a program run as another user stays.
    @Test(arguments: [(0o640, 0o640), (0o444, 0o444), (0o4755, 0o755)])
    func theyComeAlong(mode: Int, kept: Int) async throws {
        try await ProcessFixture.with { fixture in
            let transfer = keeping(fixture)
            let path = try transfer.source(content(1000)).path
            try set(path.string, mode: mode)
            let source = UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))
            #expect(try await transfer.upload(source).warnings.isEmpty)
            let sent = try attributes(fixture.server.appending(path: "a.bin").path)
            #expect(sent.mode == kept && sent.time == 1_500_000_000)
            try set(fixture.server.appending(path: "a.bin").path, mode: mode, time: 1_400_000_000)
            #expect(try await transfer.download().warnings.isEmpty)
            let received = try attributes(transfer.receivedPath)
            #expect(received.mode == kept && received.time == 1_400_000_000)
        }
    }

    @Test func theyStayBehindUnasked() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let path = try transfer.source(content(1000)).path
            try set(path.string, mode: 0o751)
            let source = UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))
            _ = try await transfer.upload(source)
            let sent = try attributes(fixture.server.appending(path: "a.bin").path)
            #expect(sent.mode != 0o751 && sent.time != 1_500_000_000)
        }
    }

    @Test func aServerThatRefusesThemIsAWarning() async throws {
        try await ProcessFixture.with(options: ["-P", "fsetstat"]) { fixture in
            let transfer = keeping(fixture)
            let receipt = try await transfer.upload(transfer.source(content(1000)))
            #expect(
                receipt.warnings == [
                    "pipe did not let a.bin have the time of its last change.", "pipe did not let a.bin have its permissions.",
                ])
            #expect(transfer.stored == content(1000))
        }
    }
}
