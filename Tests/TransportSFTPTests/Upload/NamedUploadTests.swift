import Foundation
import Logging
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransportSFTP

/// Files that are written under their own names from the start, as the settings `partFiles` and `sync` have it.
@Suite struct NamedUploadTests {
    private func transfer(_ fixture: ProcessFixture, overwrite: OverwritePolicy = .always) -> TestTransfer {
        var transfer = TestTransfer(fixture, overwrite: overwrite)
        transfer.settings = ["partFiles": "false"]
        return transfer
    }

    /// Breaks the connection in the middle of 1,000,000 bytes.
    private func interrupted(_ transfer: TestTransfer, _ source: UploadSource, from checkpoint: Checkpoint? = nil) async throws {
        transfer.fixture.connector.cuts.cut(.fromClient, after: 400_000)
        #expect(await transfer.failure { try await transfer.upload(source, from: checkpoint) }?.failureClass == .transient)
        for server in transfer.fixture.connector.servers { await server.close() }
    }

    @Test func goesOnUnderItsName() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = transfer(fixture)
            try fixture.put(content(2_000_000, seed: 2), "a.bin")
            let source = try transfer.source(content(1_000_000))
            try await interrupted(transfer, source)
            #expect(fixture.names == ["a.bin"])
            let half = try #require(transfer.stored)
            #expect((1..<1_000_000).contains(half.count) && half == content(1_000_000).prefix(half.count))
            let checkpoint = Checkpoint(data: try #require(transfer.recorder.checkpoints.first).data, confirmed: 100_000)
            let before = transfer.recorder.sent.count
            let receipt = try await transfer.upload(source, from: checkpoint)
            #expect(transfer.recorder.sent.dropFirst(before).first == 100_000)
            #expect(transfer.stored == content(1_000_000) && fixture.names == ["a.bin"])
            #expect(receipt.remoteURL == "sftp://pipe\(fixture.server.path)/a.bin")
        }
    }

    @Test func whatIsDiscardedIsGone() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = transfer(fixture)
            try await interrupted(transfer, transfer.source(content(1_000_000)))
            let transport = try #require(fixture.transport as? SFTPTransport)
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            try await transport.discard(checkpoint, at: fixture.endpoint, credentials: fixture.credentials)
            #expect(fixture.names.isEmpty)
        }
    }

    /// A later cancellation removes what a checkpoint names: there is none as long as that is another's.
    @Test func whatCouldNotBeOpenedIsNotOurs() async throws {
        try await ProcessFixture.with(options: ["-R"]) { fixture in
            let transfer = transfer(fixture)
            try fixture.put(Data("theirs".utf8), "a.bin")
            let source = try transfer.source(content(1000))
            #expect(await transfer.failure { try await transfer.upload(source) }?.code == .forbidden)
            #expect(transfer.recorder.checkpoints.isEmpty && transfer.stored == Data("theirs".utf8))
        }
    }

    @Test func aFolderIsNoFile() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = transfer(fixture)
            try FileManager.default.createDirectory(at: fixture.server.appending(path: "a.bin"), withIntermediateDirectories: true)
            let source = try transfer.source(content(10))
            #expect(await transfer.failure { try await transfer.upload(source) }?.code.rawValue == "remoteFileExists")
        }
    }

    @Test func foldersAreMade() async throws {
        try await ProcessFixture.with { fixture in
            var transfer = transfer(fixture)
            transfer.name = "one/two/three.bin"
            _ = try await transfer.upload(transfer.source(content(1000)))
            #expect(transfer.stored == content(1000))
        }
    }

    /// They judge by what has the name: half a file would be taken for a newer one, or for the same.
    @Test(arguments: OverwritePolicy.allCases.filter { $0 != .always }) func otherPoliciesKeepParts(policy: OverwritePolicy) async throws {
        try await ProcessFixture.with { fixture in
            let transfer = transfer(fixture, overwrite: policy)
            try await interrupted(transfer, transfer.source(content(1_000_000)))
            #expect(fixture.names == [".tq-t-1.part"])
        }
    }

    /// Either way round.
    @Test(arguments: ["true", "false"]) func whatBeganGoesOnAsItBegan(setting: String) async throws {
        try await ProcessFixture.with { fixture in
            var transfer = transfer(fixture)
            transfer.settings["partFiles"] = setting
            let source = try transfer.source(content(1_000_000))
            try await interrupted(transfer, source)
            let begun = fixture.names
            transfer.settings["partFiles"] = setting == "true" ? "false" : "true"
            let checkpoint = Checkpoint(data: try #require(transfer.recorder.checkpoints.first).data, confirmed: 100_000)
            try await interrupted(transfer, source, from: checkpoint)
            #expect(fixture.names == begun)
            _ = try await transfer.upload(source, from: checkpoint)
            #expect(transfer.stored == content(1_000_000) && fixture.names == ["a.bin"])
        }
    }

    /// What a small file costs: each request waits for those of its round. The first one in a folder is looked at and hidden, others are created so.
    @Test(
        arguments: [
            (["partFiles": "false", "sync": "false"], [.open, .write, .fstat, .close]),
            (["partFiles": "false"], [.open, .write, .extended, .fstat, .close]),
            (["sync": "false"], [.remove, .open, .fstat, .fsetstat, .write, .fsetstat, .fstat, .close, .rename]),
            ([:], [.remove, .open, .fstat, .fsetstat, .write, .fsetstat, .extended, .fstat, .close, .rename]),
        ] as [([String: String], [PacketType])])
    func requests(settings: [String: String], expected: [PacketType]) async throws {
        let path = FilePath(FileManager.default.temporaryDirectory.appending(path: "sftp-named-\(UUID().uuidString)").path)
        try content(4096).write(to: URL(filePath: path.string))
        defer { try? FileManager.default.removeItem(atPath: path.string) }
        let string = { (text: String) in ScriptedPeer.number(text.utf8.count) + Array(text.utf8) }
        let greeting = ScriptedPeer.packet(.version, ScriptedPeer.number(3) + string("fsync@openssh.com") + string("1"))
        let peer = ScriptedPeer(greeting: greeting) { question in
            switch question.type {
            case .open: [ScriptedPeer.handle(question.id)]
            case .lstat: [ScriptedPeer.status(question.id, .noSuchFile)]
            case .fstat: [ScriptedPeer.attributes(question.id, size: 4096)]
            default: [ScriptedPeer.status(question.id, .ok)]
            }
        }
        let transport = SFTPTransport(connector: PeerConnector(peer: peer))
        var options = AttemptOptions()
        options.overwrite = .always
        let attempt = FileAttempt(
            transferID: "t-1", endpoint: Endpoint(transport: .sftp, address: "sftp://me@peer/", settings: settings),
            payload: .upload(UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path))),
            remotePath: try RemotePath("reel.mov"),
            options: options, credentials: NoCredentials(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        _ = try await transport.perform(attempt, reporting: Recorder().reporter)
        await transport.shutdown()
        var asked = peer.asked.compactMap(\.type)
        // Where a file gets its name later, that is looked at more than once.
        if settings["partFiles"] == nil { asked.removeAll { $0 == .lstat } }
        // What takes longer than five seconds is synced on its way, too.
        let syncs = asked.indices.filter { asked[$0] == .extended }
        for index in syncs.dropLast().reversed() { asked.remove(at: index) }
        #expect(asked == expected)
    }
}
