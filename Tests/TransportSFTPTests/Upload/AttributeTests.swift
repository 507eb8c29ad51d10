import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore

@Suite struct AttributeTests {
    private func transferKeepingAttributes(_ fixture: ProcessFixture) -> TestTransfer {
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

    @Test(arguments: [(0o640, 0o640), (0o444, 0o444), (0o4755, 0o755)])
    func copiesAttributes(mode: Int, expectedMode: Int) async throws {
        try await ProcessFixture.with { fixture in
            let transfer = transferKeepingAttributes(fixture)
            let path = try transfer.source(content(1000)).path
            try set(path.string, mode: mode)
            let source = UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))
            #expect(try await transfer.upload(source).warnings.isEmpty)
            let sent = try attributes(fixture.server.appending(path: "a.bin").path)
            #expect(sent.mode == expectedMode && sent.time == 1_500_000_000)
            try set(fixture.server.appending(path: "a.bin").path, mode: mode, time: 1_400_000_000)
            #expect(try await transfer.download().warnings.isEmpty)
            let received = try attributes(transfer.receivedPath)
            #expect(received.mode == expectedMode && received.time == 1_400_000_000)
        }
    }

    @Test func doesNotCopyAttributesByDefault() async throws {
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

    @Test func warnsIfServerRefusesAttributes() async throws {
        try await ProcessFixture.with(options: ["-P", "fsetstat"]) { fixture in
            let transfer = transferKeepingAttributes(fixture)
            let receipt = try await transfer.upload(transfer.source(content(1000)))
            #expect(
                receipt.warnings == [
                    "pipe refused the modification time of a.bin.", "pipe refused the permissions of a.bin.",
                ])
            #expect(transfer.stored == content(1000))
        }
    }

    /// Uploads a file. Returns the modes of the part file while it contains bytes, and the final mode of the file.
    private func modes(_ transfer: TestTransfer, _ source: UploadSource) async throws -> (partFile: Set<Int>, file: Int?) {
        let partFile = transfer.fixture.server.appending(path: ".tq-t-1.part").path
        let seen = Locked<Set<Int>>([])
        let recordMode = { @Sendable in
            guard let found = try? FileManager.default.attributesOfItem(atPath: partFile), (found[.size] as? Int ?? 0) > 0,
                let mode = found[.posixPermissions] as? Int
            else { return }
            seen.withLock { _ = $0.insert(mode) }
        }
        _ = try await transfer.upload(
            source, reporting: AttemptReporter(progress: { _, _ in recordMode() }, checkpoint: { if $0.confirmed == 0 { recordMode() } }))
        return (seen.withLock { $0 }, try attributes(transfer.fixture.server.appending(path: transfer.name).path).mode)
    }

    /// The complete file never gets more permissions than its source.
    @Test(arguments: [0o644, 0o640, 0o600, 0o777, 0o444]) func onlyOwnerCanReadPartFiles(mode: Int) async throws {
        // The transport learns the server's default mode from the first file, and uses it for the second file.
        try await ProcessFixture.with { fixture in
            for name in ["a.bin", "b.bin"] {
                let transfer = TestTransfer(fixture, name)
                let path = try transfer.source(content(3_000_000)).path
                try set(path.string, mode: mode)
                let source = UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))
                let (partFileModes, fileMode) = try await modes(transfer, source)
                let plain = fixture.server.appending(path: "plain")
                try Data().write(to: plain)
                let defaultMode = try #require(try attributes(plain.path).mode)
                // The part file gets its final mode shortly before it is renamed.
                #expect(partFileModes.subtracting([mode & defaultMode]).isSubset(of: [0o600]) && !partFileModes.isEmpty, "\(partFileModes)")
                #expect(fileMode == mode & defaultMode, "\(String(fileMode ?? 0, radix: 8))")
            }
        }
    }

    /// The download is interrupted once.
    @Test(arguments: [0o644, 0o777], [true, false])
    func onlyOwnerCanReadPartFileOfDownload(mode: Int, keepsModes: Bool) async throws {
        let size = 3_000_000
        try await ProcessFixture.with(cutting: .fromServer) { fixture in
            var prepared = TestTransfer(fixture)
            prepared.settings = ["keepModes": "\(keepsModes)"]
            let transfer = prepared
            try fixture.put(content(size), "a.bin")
            try set(fixture.server.appending(path: "a.bin").path, mode: mode)
            let partFile = transfer.destination.partPath.string
            let checkpoints = transfer.recorder.reporter
            let seen = Locked<Set<Int>>([])
            let reporter = AttemptReporter(
                progress: { sent, _ in
                    // The part file gets its final mode after the last byte.
                    guard sent < Int64(size), let found = try? FileManager.default.attributesOfItem(atPath: partFile),
                        let mode = found[.posixPermissions] as? Int
                    else { return }
                    seen.withLock { _ = $0.insert(mode) }
                }, checkpoint: { try await checkpoints.save($0) })
            try await fixture.cut(afterBytes: 1_000_000)
            let error = await transfer.failure { try await transfer.download(reporting: reporter) }
            #expect(error?.code == .connectionLost)
            #expect(try attributes(partFile).mode == 0o600)
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            _ = try await transfer.download(from: checkpoint, reporting: reporter)
            #expect(seen.withLock { $0 } == [0o600])
            #expect(transfer.received == content(size))
        }
    }

    /// If the process is killed after the rename, the file must already have its permissions. In this test, another file with the final name
    /// prevents the rename.
    @Test(arguments: [0o644, 0o640, 0o444]) func downloadGetsPermissionsBeforeFinalName(mode: Int) async throws {
        try await ProcessFixture.with { fixture in
            var prepared = TestTransfer(fixture)
            prepared.settings = ["keepModes": "true"]
            let transfer = prepared
            try fixture.put(content(1_000_000), "a.bin")
            try set(fixture.server.appending(path: "a.bin").path, mode: mode)
            let path = transfer.receivedPath
            let reporter = AttemptReporter(
                progress: { sent, _ in
                    guard sent > 0 else { return }
                    _ = FileManager.default.createFile(atPath: path, contents: Data("other".utf8))
                }, checkpoint: { _ in })
            let error = await transfer.failure { try await transfer.download(reporting: reporter) }
            #expect(error?.code == .fileExists && transfer.received == Data("other".utf8))
            #expect(try attributes(transfer.destination.partPath.string).mode == mode | 0o600)
        }
    }

    /// The process was killed after the rename, before it removed the owner's write permission. The next attempt removes the permission, but
    /// does not change permissions that the user has set.
    @Test(arguments: [true, false]) func nextAttemptRemovesAddedPermissions(hasCheckpoint: Bool) async throws {
        try await ProcessFixture.with { fixture in
            var transfer = TestTransfer(fixture)
            transfer.settings = ["keepModes": "true"]
            try fixture.put(content(1000), "a.bin")
            try set(fixture.server.appending(path: "a.bin").path, mode: 0o444)
            _ = try await transfer.download()
            let checkpoint = hasCheckpoint ? Checkpoint(data: Data(), confirmed: 1000) : nil
            for (mode, expectedMode) in [(0o644, 0o444), (0o600, 0o600)] {
                try set(transfer.receivedPath, mode: mode)
                #expect(try await transfer.download(from: checkpoint).warnings.isEmpty)
                #expect(try attributes(transfer.receivedPath).mode == expectedMode)
            }
        }
    }

    /// The source is the queue's copy of a file.
    @Test(arguments: [0o600, 0o640, 0o444, 0o777], [true, false])
    func copiesGetPermissionsOfOriginal(mode: Int, keepsModes: Bool) async throws {
        try await ProcessFixture.with { fixture in
            var transfer = TestTransfer(fixture)
            transfer.settings = ["keepModes": "\(keepsModes)"]
            let path = try transfer.source(content(1000)).path
            try set(path.string, mode: 0o600)
            let source = UploadSource(
                path: path, identity: try SourceIdentity(ofFileAt: path), isSpooled: true,
                originalPermissions: FilePermissions(rawValue: CModeT(mode)), confinement: nil)
            #expect(try await transfer.upload(source).warnings.isEmpty)
            let plain = fixture.server.appending(path: "plain")
            try Data().write(to: plain)
            let defaultMode = try #require(try attributes(plain.path).mode)
            let sent = try attributes(fixture.server.appending(path: "a.bin").path).mode
            #expect(sent == (keepsModes ? mode : mode & defaultMode), "\(String(sent ?? 0, radix: 8))")
        }
    }

    /// The source is the queue's copy of the data, whose permissions are irrelevant.
    @Test func dataItemsGetDefaultMode() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let path = try transfer.source(content(1000)).path
            try set(path.string, mode: 0o600)
            let source = UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path), isSpooled: true)
            _ = try await transfer.upload(source)
            let plain = fixture.server.appending(path: "plain")
            try Data().write(to: plain)
            #expect(try attributes(fixture.server.appending(path: "a.bin").path).mode == attributes(plain.path).mode)
        }
    }
}
