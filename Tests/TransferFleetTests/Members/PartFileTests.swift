import Foundation
import ProcessFixture
import SSHFixture
import SystemPackage
import Testing
import TransferCore
import TransferFleet
import TransferKit
import TransportSFTP

/// A suspended member still has its part file open when another member transfers the file.
@Suite(.timeLimit(.minutes(5))) struct PartFileTests {
    private static let size = 24_000_000

    /// Suspends a member after its first checkpoint, lets another member transfer the file, and wakes the first member before the file is
    /// complete.
    ///
    /// - Parameter folder: The folder of the part file and of the final file.
    private func takeOver(_ fixture: MemberFixture, _ id: SessionID, in folder: FilePath) async throws {
        let first = try fixture.start("a")
        try await fixture.wait("a checkpoint covers bytes") {
            try await fixture.fleet.store.progress(of: id).contains { progress in
                guard case .checkpoint(let checkpoint, _, _, _) = progress.event else { return false }
                return checkpoint.confirmed > 0
            }
        }
        first.suspend()
        let earlier = try #require(try partFiles(in: folder).first)
        // While the part file is open, no other file can get its inode number.
        let open = try FileDescriptor.open(folder.appending(earlier.name), .readOnly)
        defer { try? open.close() }
        let second = try fixture.start("b")
        try await fixture.wait("the other member writes") {
            guard try await fixture.owner(of: id) == "b" else { return false }
            return try partFiles(in: folder).contains { $0.name != earlier.name || $0.size > earlier.size }
        }
        first.send(SIGCONT)
        try await fixture.waitForAll([id])
        // A member that lost its lease removes its part file when it notices the loss, which can be after the end of the session.
        try await fixture.wait("only the complete file is left") { try Self.files(in: folder).map(\.name) == ["reel-0"] }
        let files = try Self.files(in: folder)
        #expect(files.first?.inode != earlier.inode, "Each member has its own part file.")
        for member in [first, second] { member.kill() }
    }

    private struct File {
        var name: String
        var inode: UInt64
        var size: UInt64
    }

    private static func files(in folder: FilePath) throws -> [File] {
        try FileManager.default.contentsOfDirectory(atPath: folder.string).sorted().compactMap { name in
            // A file can be renamed between the two calls.
            guard let found = try? FileManager.default.attributesOfItem(atPath: folder.appending(name).string),
                let inode = found[.systemFileNumber] as? UInt64, let size = found[.size] as? UInt64
            else { return nil }
            return File(name: name, inode: inode, size: size)
        }
    }

    private func partFiles(in folder: FilePath) throws -> [File] { try Self.files(in: folder).filter { $0.name.hasSuffix(".part") } }

    private func content(_ path: FilePath) throws -> Data { try Data(contentsOf: URL(filePath: path.string)) }

    /// Creates the account `remote` and its folder on the server, and returns the folder.
    private func addAccount(_ server: SSHServerProcess, _ fixture: MemberFixture) async throws -> FilePath {
        let folder = fixture.folder.appending("remote")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        let options = SFTPOptions(identities: [server.userKey], agent: .none, knownHosts: try server.knownHosts())
        let address = "sftp://\(server.user)@127.0.0.1:\(server.port)\(folder.string)/"
        try await fixture.fleet.fleet.save(Account("remote", endpoints: [.sftp(address, options: options)]))
        return folder
    }

    /// Starts a server, adds the account `remote`, and creates a local file. For a download, the server also has the file.
    private func setUp(size: Int = Self.size, isDownload: Bool) async throws
        -> (fixture: MemberFixture, server: SSHServerProcess, folder: FilePath, source: FilePath)
    {
        let fixture = try await MemberFixture()
        let server = try await SSHServerProcess.start()
        let remote = try await addAccount(server, fixture)
        let source = try fixture.file("reel-0", size: size)
        guard isDownload else { return (fixture, server, remote, source) }
        try FileManager.default.copyItem(atPath: source.string, toPath: remote.appending("reel-0").string)
        let folder = fixture.folder.appending("received")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        return (fixture, server, folder, source)
    }

    @Test func `an upload resumes in the next member's own part file after the first member was suspended`() async throws {
        let (fixture, server, folder, source) = try await setUp(isDownload: false)
        defer { server.stop() }
        let request = try SessionRequest.upload([source], to: "remote", options: SessionOptions(rateLimit: 2_000_000))
        let id = try await fixture.fleet.fleet.add([request])[0]
        try await takeOver(fixture, id, in: folder)
        #expect(try content(folder.appending("reel-0")) == content(source))
    }

    @Test func `a download restarts in the next member's own part file after the first member was suspended`() async throws {
        let (fixture, server, folder, source) = try await setUp(isDownload: true)
        defer { server.stop() }
        let request = try SessionRequest.download(["reel-0"], from: "remote", to: folder, options: SessionOptions(rateLimit: 2_000_000))
        let id = try await fixture.fleet.fleet.add([request])[0]
        try await takeOver(fixture, id, in: folder)
        #expect(try content(folder.appending("reel-0")) == content(source))
    }

    /// A library that suspends the process just before the process links its first part file (linkat(2)). The library first creates the
    /// file that the environment variable `STOP_FILE` names.
    private static let suspendingLibrary = """
        #define _GNU_SOURCE
        #include <fcntl.h>
        #include <signal.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/syscall.h>
        #include <unistd.h>

        int linkat(int old_folder, const char *old, int new_folder, const char *new, int flags) {
            static int count;
            if (strstr(old, ".part") && count++ == 0) {
                close(open(getenv("STOP_FILE"), O_CREAT | O_WRONLY, 0600));
                // With kill(2), this thread could continue until another thread handles the signal.
                raise(SIGSTOP);
            }
            return syscall(SYS_linkat, old_folder, old, new_folder, new, flags);
        }
        """

    @Test func `a member that was suspended before the last step of a download does not create the file afterwards`() async throws {
        let (fixture, server, folder, source) = try await setUp(size: 1_000_000, isDownload: true)
        defer { server.stop() }
        let id = try await fixture.fleet.fleet.add([.download(["reel-0"], from: "remote", to: folder)])[0]
        let (library, stopFile) = (try await fixture.library("stop", Self.suspendingLibrary), fixture.folder.appending("stopped").string)
        let first = try fixture.start("a", environment: ["LD_PRELOAD": library, "STOP_FILE": stopFile])
        try await fixture.wait("the member is suspended") { FileManager.default.fileExists(atPath: stopFile) }
        let files = try Self.files(in: folder)
        #expect(files.map(\.size) == [1_000_000], "\(files)")
        try await fixture.fleet.query("UPDATE session SET lease_until = clock_timestamp()")
        let second = try fixture.start("b")
        try await fixture.waitForAll([id])
        // The second member's queue removes the part file after it has recorded the completion.
        try await fixture.wait("the part file is removed") { try Self.files(in: folder).map(\.name) == ["reel-0"] }
        #expect(try content(folder.appending("reel-0")) == content(source))
        // The user removes the file before the first member wakes.
        try FileManager.default.removeItem(atPath: folder.appending("reel-0").string)
        second.kill()
        first.send(SIGCONT)
        // The member has one slot, so it starts the next session only after the run of the first session has ended.
        let next = try await fixture.add("next", sizes: [1_000])
        try await fixture.waitForAll([next])
        first.kill()
        let remaining = try Self.files(in: folder)
        #expect(remaining.map(\.name) == [])
    }

    /// The member died after it gave the file its final name, and before it reported the completion.
    @Test func `a complete download needs no second transfer after its member died`() async throws {
        let (fixture, server, folder, source) = try await setUp(size: 1_000_000, isDownload: true)
        defer { server.stop() }
        try await fixture.rejectProgress("NEW.part = 'end'")
        let id = try await fixture.fleet.fleet.add([.download(["reel-0"], from: "remote", to: folder)])[0]
        let first = try fixture.start("a")
        try await fixture.wait("the file has its final name") { try Self.files(in: folder).contains { $0.name == "reel-0" } }
        let inode = try Self.files(in: folder).first { $0.name == "reel-0" }?.inode
        first.kill()
        try await fixture.fleet.query("DROP TRIGGER reject ON progress")
        try await fixture.fleet.query("UPDATE session SET lease_until = clock_timestamp()")
        let second = try fixture.start("b")
        try await fixture.waitForAll([id])
        second.kill()
        #expect(try content(folder.appending("reel-0")) == content(source))
        #expect(try Self.files(in: folder).first { $0.name == "reel-0" }?.inode == inode)
    }
}
