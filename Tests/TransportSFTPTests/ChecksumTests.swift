import Crypto
import Foundation
import Locking
import Logging
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransportSFTP
import TransportSupport

@Suite(.timeLimit(.minutes(10)))
struct ChecksumTests {
    /// Names that a shell could misinterpret, or that could corrupt the output of a program that prints them.
    private static let names: [[UInt8]] =
        [
            "plain.bin", "-n", "--help", "a b", "line\nfeed", "line feed at the end\n", #"back\slash\n"#, "$(false)`false`\"'*?[a]~#!&;|<>",
            "\t",
        ]
        .map { Array($0.utf8) } + [(1...255).filter { $0 != UInt8(ascii: "/") }]

    private func digest(_ content: Data) -> String { "sha256:" + SHA256.hash(data: content).map { String(format: "%02x", $0) }.joined() }

    private func verifyingTransfer(_ fixture: ProcessFixture, _ name: String = "a.bin") -> TestTransfer {
        var transfer = TestTransfer(fixture, name, overwrite: .always)
        transfer.options.verification = .checksum
        return transfer
    }

    // MARK: Computed by the shell

    /// The parser must split bytes, because Swift treats CR LF as one `Character`.
    @Test func acceptsTwoCharacterLineEndings() {
        let digits = String(repeating: "a", count: 64)
        let output = "Welcome\r\ntransferkit-checksums sha256\r\n\(digits)  -\r\nunreadable\n\(digits)\r\n"
        let results = ChecksumCommand.results(Array(output.utf8))
        #expect(results?.algorithm == .sha256 && results?.digests.map { $0?.digits } == [digits, nil, digits])
    }

    @Test func computesChecksumsInShell() async throws {
        let shell = TestShell()
        try await ProcessFixture.with(commands: shell) { fixture in
            let transfer = verifyingTransfer(fixture, "it's/a.bin")
            let sent = try await transfer.upload(transfer.source(content(300_000)))
            #expect(sent.checksum == digest(content(300_000)) && sent.warnings.isEmpty)
            let received = try await transfer.download()
            #expect(received.checksum == digest(content(300_000)) && received.warnings.isEmpty)
            #expect(transfer.received == content(300_000))
            #expect(shell.commands.count == 3 && shell.commands[0].isEmpty, "Only the first command tests the shell.")
        }
    }

    @Test(arguments: names) func acceptsArbitraryNames(name: [UInt8]) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "sftp-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = Array(folder.path.utf8) + [UInt8(ascii: "/")] + name
        let file = try FileDescriptor.open(
            FilePath(bytes: path), .writeOnly, options: [.create, .closeOnExec], permissions: .ownerReadWrite)
        try file.closeAfter { _ = try file.writeAll("abc".utf8) }
        let checksums = RemoteChecksums(TestShell())
        let other = Array(folder.path.utf8) + Array("/missing".utf8)
        let found = try await (checksums.digest(of: path, size: 3), checksums.digest(of: other, size: 3))
        #expect(found.0?.digits == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(found.1 == nil)
    }

    @Test func usesAvailableChecksumProgram() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "sftp-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let shell = TestShell(path: folder.path)
        #expect(try await RemoteChecksums(shell).algorithm() == nil)
        try FileManager.default.createSymbolicLink(atPath: folder.appending(path: "md5sum").path, withDestinationPath: "/usr/bin/md5sum")
        try await ProcessFixture.with(commands: shell) { fixture in
            let transfer = verifyingTransfer(fixture)
            let sent = try await transfer.upload(transfer.source(Data("abc".utf8)))
            #expect(sent.checksum == "md5:900150983cd24fb0d6963f7d28e17f72" && sent.warnings.isEmpty)
        }
        try FileManager.default.createSymbolicLink(
            atPath: folder.appending(path: "sha256sum").path, withDestinationPath: "/usr/bin/sha256sum")
        #expect(try await RemoteChecksums(shell).algorithm() == .sha256)
    }

    @Test func computesChecksumsOfManyFilesInOneCommand() async throws {
        let line = String(repeating: "0", count: 64)
        let shell = HeldShell { input in
            Array("Welcome!\ntransferkit-checksums sha256\n".utf8) + input.split(separator: 10).flatMap { _ in Array("\(line)  -\n".utf8) }
        }
        let checksums = RemoteChecksums(shell)
        #expect(try await checksums.algorithm() == .sha256)
        try await withThrowingTaskGroup(of: Checksum?.self) { group in
            for number in 0..<42 { group.addTask { try await checksums.digest(of: Array("f-\(number)".utf8), size: 1000) } }
            // Two commands run concurrently. When they exit, one command computes the checksums of all files that waited.
            while await checksums.backlog < 40 { await Task.yield() }
            while shell.commands.count < 2 { await Task.yield() }
            shell.release()
            while shell.commands.count < 3 { await Task.yield() }
            shell.release()
            for try await digest in group { #expect(digest?.digits == line) }
        }
        #expect(shell.commands.map { $0.count { $0 == 10 } } == [1, 1, 40])
    }

    @Test func cancellationDoesNotWaitForCommand() async throws {
        let shell = HeldShell { _ in Array("transferkit-checksums sha256\n".utf8) }
        try await ProcessFixture.with(commands: shell) { fixture in
            let transfer = verifyingTransfer(fixture)
            let source = try transfer.source(content(1000))
            let attempt = Task { try await transfer.upload(source) }
            while shell.commands.isEmpty { await Task.yield() }
            attempt.cancel()
            await #expect(throws: CancellationError.self) { try await attempt.value }
            shell.release()
            // Output without results means that the server can't compute checksums, so the transport reads the file back.
            #expect(try await transfer.upload(source).warnings.count == 1)
        }
    }

    // MARK: Read back

    @Test func readsFileBackWithoutShell() async throws {
        try await ProcessFixture.with { fixture in
            let transfer = verifyingTransfer(fixture)
            let sent = try await transfer.upload(transfer.source(content(300_000)))
            #expect(sent.checksum == digest(content(300_000)))
            #expect(sent.warnings == ["pipe returned no matching checksum of a.bin, so the whole file was read back and compared."])
            let received = try await transfer.download()
            #expect(received.checksum == digest(content(300_000)) && received.warnings == sent.warnings)
        }
    }

    @Test func doesNotSendUnverifiableFile() async throws {
        let peer = ScriptedPeer { request in
            switch request.type {
            case .open where Self.opensForReading(request.body):
                [ScriptedPeer.status(request.id, .permissionDenied)]
            case .open: [ScriptedPeer.handle(request.id)]
            case .lstat: [ScriptedPeer.status(request.id, .noSuchFile)]
            default: [ScriptedPeer.status(request.id, .ok)]
            }
        }
        try await ProcessFixture.with { fixture in
            let source = try TestTransfer(fixture).source(content(1000))
            let transport = SFTPTransport(connector: PeerConnector(peer: peer))
            let attempt = FileAttempt(
                transferID: "t-1", endpoint: .sftp("sftp://me@peer/"), source: source, remotePath: try RemotePath("reel.mov"),
                options: AttemptOptions(verification: .checksum), credentials: NoCredentials(), logger: .init(label: "test"))
            let error = await #expect(throws: TransferError.self) {
                try await transport.perform(attempt, reporting: Recorder().reporter)
            }
            #expect(error?.failureClass == .unsupported)
            #expect(!peer.requests.contains { $0.type == .write })
            #expect(peer.requests.last?.type == .remove)
            await transport.shutdown()
        }
    }

    /// The flags follow the path, and their lowest bit stands for read access (draft-ietf-secsh-filexfer-02, section 6.3).
    private static func opensForReading(_ body: [UInt8]) -> Bool {
        let length = body.prefix(4).reduce(0) { $0 << 8 | Int($1) }
        return body.dropFirst(4 + length).prefix(4).last.map { $0 & 1 == 1 } ?? false
    }

    @Test func readsFileBackIfShellReturnsOtherChecksum() async throws {
        let shell = TestShell()
        let other = HeldShell { _ in Array("transferkit-checksums sha256\n\(String(repeating: "0", count: 64))  -\n".utf8) }
        #expect(try await RemoteChecksums(shell).algorithm() == .sha256)
        try await ProcessFixture.with(commands: other) { fixture in
            let transfer = verifyingTransfer(fixture)
            let source = try transfer.source(content(1000))
            async let sent = transfer.upload(source)
            while other.commands.isEmpty { await Task.yield() }
            other.release()
            #expect(try await sent.checksum == digest(content(1000)))
            #expect(try await sent.warnings.count == 1)
        }
    }

    // MARK: Mismatches

    private func corruptingShell(_ file: Locked<URL?>) -> TestShell {
        TestShell {
            guard let url = file.withLock({ $0 }) else { return }
            let handle = try FileHandle(forUpdating: url)
            try handle.seek(toOffset: 500)
            try handle.write(contentsOf: [0])
            try handle.close()
        }
    }

    @Test func removesUploadAfterMismatch() async throws {
        let target = Locked<URL?>(nil)
        try await ProcessFixture.with(commands: corruptingShell(target)) { fixture in
            target.withLock { $0 = fixture.server.appending(path: ".tq-t-1.part") }
            let transfer = verifyingTransfer(fixture)
            let source = try transfer.source(Data(repeating: 1, count: 1000))
            let error = await transfer.failure { try await transfer.upload(source) }
            #expect(error?.failureClass == .resumeLost && error?.code == .checksumMismatch)
            #expect(fixture.names.isEmpty)
        }
    }

    @Test func rejectsDownloadAfterMismatch() async throws {
        let target = Locked<URL?>(nil)
        try await ProcessFixture.with(commands: corruptingShell(target)) { fixture in
            target.withLock { $0 = fixture.server.appending(path: "a.bin") }
            try fixture.put(Data(repeating: 1, count: 1000), "a.bin")
            let transfer = verifyingTransfer(fixture)
            let error = await transfer.failure { try await transfer.download() }
            #expect(error?.failureClass == .resumeLost && error?.code == .checksumMismatch)
            #expect(transfer.received == nil)
        }
    }

    // MARK: Resumed uploads and streams

    @Test func completedUploadReturnsChecksumAgain() async throws {
        try await ProcessFixture.with(commands: TestShell()) { fixture in
            let transfer = verifyingTransfer(fixture)
            let source = try transfer.source(content(1000))
            _ = try await transfer.upload(source)
            let checkpoint = try #require(transfer.recorder.checkpoints.last)
            #expect(try await transfer.upload(source, from: checkpoint).checksum == digest(content(1000)))
        }
    }

    @Test func rejectsStreamsBeforeFirstByte() async throws {
        try await ProcessFixture.with(commands: TestShell()) { fixture in
            let transfer = verifyingTransfer(fixture)
            let file = try transfer.source(content(1000))
            let stream = UploadSource(path: file.path, identity: file.identity, growth: SourceGrowth(.complete(1000)))
            #expect(await transfer.failure { try await transfer.upload(stream) }?.failureClass == .unsupported)
            #expect(fixture.names.isEmpty)
        }
    }
}
