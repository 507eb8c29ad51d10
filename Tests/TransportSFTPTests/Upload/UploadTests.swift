import Foundation
import Locking
import Logging
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransportSFTP

@Suite struct UploadTests {
    // MARK: Existing files

    @Test func doesNotReplaceByDefault() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            try fixture.put(Data("theirs".utf8), "a.bin")
            let source = try transfer.source(content(1000))
            let error = await transfer.failure { try await transfer.upload(source) }
            #expect(error?.failureClass == .permanent && error?.code.rawValue == "remoteFileExists")
            #expect(fixture.names == ["a.bin"] && transfer.stored == Data("theirs".utf8))
        }
    }

    /// Replaces the file even on a server that can't replace it atomically.
    @Test(arguments: [[], ["-P", "posix-rename,fsync,limits,statvfs,fstatvfs,hardlink"]])
    func replacesFileIfPolicyRequiresIt(options: [String]) async throws {
        try await ProcessFixture.with(options: options) { fixture in
            let transfer = TestTransfer(fixture, overwrite: .always)
            try fixture.put(Data("theirs".utf8), "a.bin")
            let receipt = try await transfer.upload(transfer.source(content(100_000)))
            #expect(transfer.stored == content(100_000))
            #expect(fixture.names == ["a.bin"])
            #expect(receipt.warnings.count == (options.isEmpty ? 0 : 1))
            #expect(receipt.remoteURL == "sftp://pipe\(fixture.server.path)/a.bin")
        }
    }

    @Test func differentPolicyKeepsOnlyFilesWithSameSizeAndTime() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture, overwrite: .different)
            let source = try transfer.source(content(1000))
            _ = try await transfer.upload(source)
            try fixture.put(content(1000, seed: 2), "a.bin", modified: Int(source.identity.modificationTime / 1_000_000_000))
            _ = try await transfer.upload(source)
            #expect(transfer.stored == content(1000, seed: 2), "A file with the same size and time is kept.")
            try fixture.put(content(1000, seed: 2), "a.bin")
            _ = try await transfer.upload(source)
            #expect(transfer.stored == content(1000), "A file with a different time is replaced.")
            // The upload copied the source's time, so the next session considers the file identical.
            let found = try FileManager.default.attributesOfItem(atPath: fixture.server.appending(path: "a.bin").path)
            #expect(
                (found[.modificationDate] as? Date)?.timeIntervalSince1970.rounded(.down)
                    == Double(source.identity.modificationTime / 1_000_000_000))
        }
    }

    /// SFTP can't express a modification time before 1970. The transport then sets no time, so the file keeps the time of the upload.
    @Test func setsNoTimeBefore1970() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture, overwrite: .different)
            var source = try transfer.source(content(1000))
            var times = [timespec](repeating: timespec(tv_sec: -1, tv_nsec: 500_000_000), count: 2)
            #expect(unsafe utimensat(AT_FDCWD, source.path.string, &times, 0) == 0)
            source = UploadSource(path: source.path, identity: try SourceIdentity(ofFileAt: source.path))
            _ = try await transfer.upload(source)
            let found = try FileManager.default.attributesOfItem(atPath: fixture.server.appending(path: "a.bin").path)
            #expect((found[.modificationDate] as? Date)?.timeIntervalSince1970 ?? 0 > 1)
        }
    }

    @Test func newerPolicyReplacesOnlyOlderFile() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture, overwrite: .newer)
            let source = try transfer.source(content(1000))
            try fixture.put(Data("theirs".utf8), "a.bin", modified: Int(source.identity.modificationTime / 1_000_000_000) + 1)
            _ = try await transfer.upload(source)
            #expect(transfer.stored == Data("theirs".utf8))
            try fixture.put(Data("theirs".utf8), "a.bin")
            _ = try await transfer.upload(source)
            #expect(transfer.stored == content(1000))
        }
    }

    @Test func skipPolicyKeepsFileAndRenamePolicyNumbersUploads() async throws {
        try await ProcessFixture.with { fixture in
            try fixture.put(Data("theirs".utf8), "a.bin")
            let skipping = TestTransfer(fixture, overwrite: .skip)
            #expect(try await skipping.upload(skipping.source(content(10))).bytes == 10)
            let numbering = TestTransfer(fixture, overwrite: .rename)
            for number in 1...2 {
                let receipt = try await numbering.upload(numbering.source(content(10)))
                #expect(receipt.remoteURL?.hasSuffix("/a%20%28\(number)%29.bin") == true)
            }
            #expect(fixture.names == ["a (1).bin", "a (2).bin", "a.bin"])
            #expect(fixture.onServer("a.bin") == Data("theirs".utf8))
        }
    }

    @Test func failsIfRemoteNameIsFolder() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture, overwrite: .always)
            try FileManager.default.createDirectory(at: fixture.server.appending(path: "a.bin"), withIntermediateDirectories: true)
            let source = try transfer.source(content(10))
            let error = await transfer.failure { try await transfer.upload(source) }
            #expect(error?.failureClass == .permanent)
        }
    }

    /// A login proves that the server works again after an outage. A connection that is already open proves nothing.
    @Test func reportsLoginOfNewConnection() async throws {
        try await ProcessFixture.with { fixture in
            let first = TestTransfer(fixture, "1.bin")
            _ = try await first.upload(first.source(content(10)))
            #expect(first.recorder.logins == 1)
            let second = TestTransfer(fixture, "2.bin")
            _ = try await second.upload(second.source(content(10)))
            #expect(second.recorder.logins == 0)
        }
    }

    // MARK: Folders

    @Test func createsFolders() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture, "one/two/three.bin")
            _ = try await transfer.upload(transfer.source(content(1000)))
            #expect(transfer.stored == content(1000))
            // The endpoint's folder itself is not created, because a wrong address must not create folders.
            var lost = transfer
            lost.name = "b.bin"
            try FileManager.default.removeItem(at: fixture.server)
            let source = try lost.source(content(10))
            let error = await lost.failure { try await lost.upload(source) }
            #expect(error?.failureClass == .permanent && error?.code == .noSuchRemoteFile)
        }
    }

    @Test func doesNotFollowLinkInPlaceOfPartFile() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let other = fixture.server.appending(path: "other")
            try Data("theirs".utf8).write(to: other)
            try FileManager.default.createSymbolicLink(at: fixture.server.appending(path: ".tq-t-1.part"), withDestinationURL: other)
            _ = try await transfer.upload(transfer.source(content(1000)))
            #expect(fixture.onServer("other") == Data("theirs".utf8))
            #expect(transfer.stored == content(1000))
        }
    }

    // MARK: Resuming

    /// Interrupts an upload. Returns its first checkpoint, but with the given confirmed position.
    private func interruptUpload(_ transfer: TestTransfer, _ source: UploadSource, at position: Int64) async throws -> Checkpoint {
        transfer.fixture.connector.cuts.cut(.fromClient, after: 400_000)
        _ = await transfer.failure { try await transfer.upload(source) }
        for server in transfer.fixture.connector.servers { await server.close() }
        // Uses the first checkpoint, because later ones may contain an acknowledged position.
        return Checkpoint(data: try #require(transfer.recorder.checkpoints.first).data, confirmed: position)
    }

    @Test func resumesFromCheckpoint() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(1_000_000))
            let checkpoint = try await interruptUpload(transfer, source, at: 100_000)
            #expect((transfer.storedPartFile?.count ?? 0) > 100_000, "The part file must contain unconfirmed bytes.")
            let before = transfer.recorder.sent.count
            _ = try await transfer.upload(source, from: checkpoint)
            #expect(transfer.recorder.sent.dropFirst(before).first == 100_000)
            #expect(transfer.stored == content(1_000_000))
            #expect(fixture.names == ["a.bin"])
        }
    }

    @Test(arguments: [false, true]) func rejectsShortOrMissingPartFile(isMissing: Bool) async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(1_000_000))
            let checkpoint = try await interruptUpload(transfer, source, at: 900_000)
            if isMissing { try FileManager.default.removeItem(at: fixture.server.appending(path: ".tq-t-1.part")) }
            let error = await transfer.failure { try await transfer.upload(source, from: checkpoint) }
            #expect(error?.failureClass == .resumeLost)
        }
    }

    /// The response to the request that renames the part file was lost, so the file may have either name.
    @Test func resumesAfterLostResponseToRename() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(1000))
            _ = try await transfer.upload(source)
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            #expect(checkpoint.confirmed == 1000)
            // The file has its final name.
            #expect(try await transfer.upload(source, from: checkpoint).bytes == 1000)
            // The file has the part file's name.
            try FileManager.default.moveItem(
                at: fixture.server.appending(path: "a.bin"), to: fixture.server.appending(path: ".tq-t-1.part"))
            #expect(try await transfer.upload(source, from: checkpoint).bytes == 1000)
            #expect(fixture.names == ["a.bin"])
            // Neither the final file nor the part file exists.
            try FileManager.default.removeItem(at: fixture.server.appending(path: "a.bin"))
            #expect(await transfer.failure { try await transfer.upload(source, from: checkpoint) }?.failureClass == .resumeLost)
        }
    }

    /// The part file was removed before it was renamed. The file with the final name has the same size, but existed before the upload.
    @Test func doesNotMistakeExistingFileForUpload() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture, overwrite: .always)
            let source = try transfer.source(content(1000))
            let putExistingFile = { try fixture.put(content(1000, seed: 2), "a.bin", modified: 1_000_000_000) }
            try putExistingFile()
            _ = try await transfer.upload(source)
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            try putExistingFile()
            #expect(await transfer.failure { try await transfer.upload(source, from: checkpoint) }?.failureClass == .resumeLost)
            // The next upload replaces the file.
            _ = try await transfer.upload(source)
            #expect(transfer.stored == content(1000))
        }
    }

    /// The server has no atomic renames, and rejects the rename with the given status.
    @Test(arguments: [Status.Code.failure, .fileExists, .permissionDenied, .noSpace, .quotaExceeded, .unsupported, .invalidName])
    func removesExistingFileOnlyIfItMayPreventRename(code: Status.Code) async throws {
        let peer = ScriptedPeer { request in
            switch request.type {
            case .open: [ScriptedPeer.handle(request.id)]
            case .lstat, .fstat: [ScriptedPeer.attributes(request.id, size: 1000)]
            case .rename: [ScriptedPeer.status(request.id, code)]
            default: [ScriptedPeer.status(request.id, .ok)]
            }
        }
        #expect(try await PeerConnector(peer: peer).upload(1000, overwrite: .always) != nil)
        let isRemoved = peer.requests.contains { $0.type == .remove && String(decoding: $0.body, as: UTF8.self).hasSuffix("/reel.mov") }
        #expect(isRemoved == [.failure, .fileExists, .permissionDenied].contains(code))
    }

    @Test func discardRemovesPartFile() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let checkpoint = try await interruptUpload(transfer, transfer.source(content(1_000_000)), at: 0)
            #expect(fixture.names == [".tq-t-1.part"])
            let transport = try #require(fixture.transport as? SFTPTransport)
            // The second call finds no file, and succeeds.
            for _ in 0..<2 { try await transport.discard(checkpoint, at: fixture.endpoint, credentials: fixture.credentials) }
            #expect(fixture.names.isEmpty)
        }
    }

    // MARK: Failing servers

    @Test func treatsReadOnlyServerAsPermanentFailure() async throws {
        try await ProcessFixture.with(options: ["-R"]) { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(10))
            #expect(await transfer.failure { try await transfer.upload(source) }?.code == .forbidden)
        }
    }

    /// With 5, the name of the folder is too long, instead of the name of the file.
    @Test(arguments: [300, 5]) func treatsLongNameAsPermanentFailure(length: Int) async throws {
        try await ProcessFixture.with { fixture in
            let name = String(repeating: "x", count: length)
            let transfer = TestTransfer(fixture, length > 255 ? name : "\(String(repeating: "y", count: 300))/\(name)")
            let source = try transfer.source(content(10))
            for isUpload in [true, false] {
                let error = await transfer.failure { try await isUpload ? transfer.upload(source) : transfer.download() }
                #expect(error?.failureClass == .permanent && error?.message.contains("300 bytes") == true, "\(error?.description ?? "")")
            }
        }
    }

    @Test func retriesUnexplainedFailuresTwice() async throws {
        let peer = ScriptedPeer { request in
            switch request.type {
            case .lstat, .stat: [ScriptedPeer.status(request.id, .noSuchFile)]
            case .remove: [ScriptedPeer.status(request.id, .ok)]
            default: [ScriptedPeer.status(request.id, .failure)]
            }
        }
        try await ProcessFixture.with { fixture in
            let transport = SFTPTransport(connector: PeerConnector(peer: peer))
            let source = try TestTransfer(fixture).source(content(10))
            // If the user retries the file after the permanent failure, the same number of attempts is permitted again.
            for expected in [FailureClass.transient, .transient, .permanent, .transient] {
                let attempt = FileAttempt(
                    transferID: "t-1", endpoint: .sftp("sftp://me@peer/"), source: source, remotePath: try RemotePath("a.bin"),
                    credentials: NoCredentials(), logger: Logger(label: "test"))
                let error = await #expect(throws: TransferError.self) {
                    try await transport.perform(attempt, reporting: Recorder().reporter)
                }
                #expect(error?.failureClass == expected && error?.code == .serverError, "\(error?.description ?? "")")
            }
            await transport.shutdown()
        }
    }

    @Test func explainsGenericFailure() async throws {
        let checks = Locked(0)
        let peer = ScriptedPeer { request in
            switch request.type {
            // The first check finds no file. Then another client creates one.
            case .lstat
            where checks.withLock({ checks in
                checks += 1; return checks
            }) > 1: [ScriptedPeer.attributes(request.id, size: 3)]
            case .lstat: [ScriptedPeer.status(request.id, .noSuchFile)]
            case .open: [ScriptedPeer.status(request.id, .failure)]
            default: [ScriptedPeer.status(request.id, .ok)]
            }
        }
        try await ProcessFixture.with { fixture in
            let transport = SFTPTransport(connector: PeerConnector(peer: peer))
            let attempt = FileAttempt(
                transferID: "t-1", endpoint: .sftp("sftp://me@peer/"), source: try TestTransfer(fixture).source(content(10)),
                remotePath: try RemotePath("a.bin"), credentials: NoCredentials(), logger: Logger(label: "test"))
            let error = await #expect(throws: TransferError.self) {
                try await transport.perform(attempt, reporting: Recorder().reporter)
            }
            #expect(error?.failureClass == .permanent && error?.code.rawValue == "remoteFileExists", "\(error?.description ?? "")")
            await transport.shutdown()
        }
    }

    @Test func reconnectsAfterServerCrash() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = TestTransfer(fixture)
            let source = try transfer.source(content(1000))
            _ = try await transfer.upload(source)
            for server in fixture.connector.servers {
                server.kill()
                await server.close()
            }
            var second = transfer
            second.name = "b.bin"
            _ = try await second.upload(source)
            #expect(second.stored == content(1000), "The transport opens another connection.")
            #expect(fixture.connector.servers.count == 2)
        }
    }

    @Test func hundredFilesShareConnections() async throws {
        try await ProcessFixture.with { fixture in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<100 {
                    let source = try TestTransfer(fixture).source(content(1000, seed: UInt64(number)))
                    group.addTask {
                        let attempt = FileAttempt(
                            transferID: "t-\(number)", endpoint: fixture.endpoint, source: source,
                            remotePath: try RemotePath("f-\(number)"),
                            credentials: fixture.credentials, logger: .init(label: "test"))
                        _ = try await fixture.transport.perform(attempt, reporting: Recorder().reporter)
                    }
                }
                try await group.waitForAll()
            }
            #expect(fixture.names.count == 100)
            for number in 0..<100 { #expect(fixture.onServer("f-\(number)") == content(1000, seed: UInt64(number))) }
            #expect((1...2).contains(fixture.connector.servers.count))
        }
    }

    @Test func checkReportsFeaturesAndLimits() async throws {
        try await ProcessFixture.with { fixture in
            let transport = try #require(fixture.transport as? SFTPTransport)
            let report = try await transport.check(fixture.endpoint, credentials: fixture.credentials)
            #expect(report.version == "SFTP 3")
            #expect(report.features.contains("posix-rename@openssh.com"))
            #expect(Set(report.limits.keys).isSuperset(of: ["packet", "read", "write"]) && report.limits.values.allSatisfy { $0 > 0 })
        }
    }
}
