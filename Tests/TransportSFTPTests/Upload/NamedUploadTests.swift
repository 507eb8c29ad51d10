import Foundation
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransportSFTP

/// Uploads that write directly to the final name, and the effects of the settings `partFiles` and `sync`.
@Suite struct NamedUploadTests {
    private func transfer(_ fixture: ProcessFixture, overwrite: OverwritePolicy = .always) -> TestTransfer {
        var transfer = TestTransfer(fixture, overwrite: overwrite)
        transfer.settings = ["partFiles": "false"]
        return transfer
    }

    /// Uploads 1,000,000 bytes, and breaks the connection after 400,000.
    private func interruptUpload(_ transfer: TestTransfer, _ source: UploadSource, from checkpoint: Checkpoint? = nil) async throws {
        transfer.fixture.connector.cuts.cut(.fromClient, after: 400_000)
        #expect(await transfer.failure { try await transfer.upload(source, from: checkpoint) }?.failureClass == .transient)
        for server in transfer.fixture.connector.servers { await server.close() }
    }

    @Test func resumesFileWithFinalName() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = transfer(fixture)
            try fixture.put(content(2_000_000, seed: 2), "a.bin")
            let source = try transfer.source(content(1_000_000))
            try await interruptUpload(transfer, source)
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

    /// The queue removes abandoned content as soon as the server permits the removal. By then, the file may have been retried, or sent
    /// through another endpoint. So the removal must not delete the file with the final name.
    @Test func lateRemovalKeepsCompleteFile() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = transfer(fixture)
            let source = try transfer.source(content(1_000_000))
            try await interruptUpload(transfer, source)
            let abandoned = try #require(transfer.recorder.checkpoints.last)
            _ = try await transfer.upload(source)
            let transport = try #require(fixture.transport as? SFTPTransport)
            try await transport.discard(abandoned, at: fixture.endpoint, credentials: fixture.credentials)
            #expect(transfer.stored == content(1_000_000) && fixture.names == ["a.bin"])
        }
    }

    /// A file that could not be opened may belong to another user, so it must not be removed.
    @Test func neverRemovesFileThatCouldNotBeOpened() async throws {
        try await ProcessFixture.with(options: ["-R"]) { fixture in
            let transfer = transfer(fixture)
            try fixture.put(Data("theirs".utf8), "a.bin")
            let source = try transfer.source(content(1000))
            #expect(await transfer.failure { try await transfer.upload(source) }?.code == .forbidden)
            #expect(transfer.recorder.checkpoints.isEmpty && transfer.stored == Data("theirs".utf8))
        }
    }

    @Test func rejectsFolder() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = transfer(fixture)
            try FileManager.default.createDirectory(at: fixture.server.appending(path: "a.bin"), withIntermediateDirectories: true)
            let source = try transfer.source(content(10))
            #expect(await transfer.failure { try await transfer.upload(source) }?.code.rawValue == "remoteFileExists")
        }
    }

    @Test func createsFolders() async throws {
        try await ProcessFixture.with { fixture in
            var transfer = transfer(fixture)
            transfer.name = "one/two/three.bin"
            _ = try await transfer.upload(transfer.source(content(1000)))
            #expect(transfer.stored == content(1000))
        }
    }

    /// Policies other than `always` depend on the existing file. An incomplete file with the final name could seem newer or identical.
    @Test(arguments: OverwritePolicy.allCases.filter { $0 != .always }) func policiesOtherThanAlwaysUsePartFiles(policy: OverwritePolicy)
        async throws
    {
        try await ProcessFixture.with { fixture in
            let transfer = transfer(fixture, overwrite: policy)
            try await interruptUpload(transfer, transfer.source(content(1_000_000)))
            #expect(fixture.names == [".tq-t-1.part"])
        }
    }

    @Test(arguments: ["true", "false"]) func changedSettingDoesNotAffectResumedUpload(setting: String) async throws {
        try await ProcessFixture.with { fixture in
            var transfer = transfer(fixture)
            transfer.settings["partFiles"] = setting
            let source = try transfer.source(content(1_000_000))
            try await interruptUpload(transfer, source)
            let originalNames = fixture.names
            transfer.settings["partFiles"] = setting == "true" ? "false" : "true"
            let checkpoint = Checkpoint(data: try #require(transfer.recorder.checkpoints.first).data, confirmed: 100_000)
            try await interruptUpload(transfer, source, from: checkpoint)
            #expect(fixture.names == originalNames)
            _ = try await transfer.upload(source, from: checkpoint)
            #expect(transfer.stored == content(1_000_000) && fixture.names == ["a.bin"])
        }
    }

    /// Checks the requests for the first small file in a folder. The transport learns the server's default mode from this file before it
    /// restricts the permissions of the part file. It creates later part files with restricted permissions.
    @Test(
        arguments: [
            (["partFiles": "false", "sync": "false"], [.open, .write, .fstat, .close]),
            (["partFiles": "false"], [.open, .write, .extended, .fstat, .close]),
            (["sync": "false"], [.remove, .open, .fstat, .fsetstat, .write, .fsetstat, .fstat, .close, .rename]),
            ([:], [.remove, .open, .fstat, .fsetstat, .write, .fsetstat, .extended, .fstat, .close, .rename]),
        ] as [([String: String], [PacketType])])
    func sendsExpectedRequests(settings: [String: String], expected: [PacketType]) async throws {
        let string = { (text: String) in ScriptedPeer.number(text.utf8.count) + Array(text.utf8) }
        let greeting = ScriptedPeer.packet(.version, ScriptedPeer.number(3) + string("fsync@openssh.com") + string("1"))
        let peer = ScriptedPeer(greeting: greeting) { request in
            switch request.type {
            case .open: [ScriptedPeer.handle(request.id)]
            case .lstat: [ScriptedPeer.status(request.id, .noSuchFile)]
            case .fstat: [ScriptedPeer.attributes(request.id, size: 4096)]
            default: [ScriptedPeer.status(request.id, .ok)]
            }
        }
        #expect(try await PeerConnector(peer: peer).upload(4096, overwrite: .always, settings: settings) == nil)
        var requests = peer.requests.compactMap(\.type)
        // Ignores the checks of the final name, which occur several times if a part file is used.
        if settings["partFiles"] == nil { requests.removeAll { $0 == .lstat } }
        // Ignores additional syncs, which occur if the upload takes more than five seconds.
        let syncs = requests.indices.filter { requests[$0] == .extended }
        for index in syncs.dropLast().reversed() { requests.remove(at: index) }
        #expect(requests == expected)
    }
}
