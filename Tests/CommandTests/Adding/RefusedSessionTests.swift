import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCommands
import TransferCore
import TransferKit

private let memoryDisk = FilePath("/dev/shm")

private let memoryDiskSupportsHugeFiles: Bool = {
    let path = memoryDisk.appending("transferq-\(UUID().uuidString)")
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    return (try? makeSparse(path, size: 7 << 60)) != nil
}()

private func makeSparse(_ path: FilePath, size: Int64) throws {
    let file = try FileDescriptor.open(path, .writeOnly, options: [.create], permissions: .ownerReadWrite)
    defer { try? file.close() }
    try file.resize(to: size)
}

/// The queue rejects impossible sessions as soon as `transferq add` or an app enqueues them.
@Suite struct RefusedSessionTests {
    @Test(arguments: ["a b", "é", "a,b", "transferid"], [["https://one.example/"], ["sftp://me@one.example/", "https://two.example/"]])
    func rejectsInvalidTusMetadata(key: String, addresses: [String]) async throws {
        let program = try TransferQ()
        try program.folder.file("reel", size: 1)
        #expect(try await program.run(["account", "add", "place"] + addresses).status == 0)
        for options in [[], ["--each", "--hold"]] {
            let refused = try await program.run(["add", "place", "reel", "--metadata", "\(key)=1"] + options)
            #expect(refused.status == 2 && refused.diagnostics.contains(key.debugDescription), "\(refused.testDescription)")
        }
        #expect(try await program.succeed("list", "--json").lines == [])
        try await program.succeed("add", "place", "reel", "--metadata", "a=1")
    }

    @Test func returnsExistingSessionDespiteInvalidMetadata() async throws {
        let program = try TransferQ()
        try program.folder.file("reel", size: 1)
        try await program.succeed("account", "add", "place", "sftp://me@one.example/")
        let add = ["add", "place", "reel", "--metadata", "a b=1", "--dedupe"]
        let id = try await program.run(add + ["known"]).lines
        try await program.succeed("account", "edit", "place", "https://two.example/")
        let again = try await program.run(add + ["known"])
        #expect(again.status == 0 && again.lines == id && id.count == 1, "\(again.testDescription)")
        let refused = try await program.run(add + ["new"])
        #expect(refused.status == 2 && refused.lines == [] && refused.diagnostics.contains("\"a b\""), "\(refused.testDescription)")
        #expect(try await program.succeed("list", "--json").lines.count == 1)
    }

    @Test func createsUploadsOnlyAtTrustedURL() async throws {
        let server = try ScriptedServer { request, _ in
            [
                request.method == "OPTIONS"
                    ? .answer(404) : request.method == "POST" ? .tus(201, ["Location": "/1"]) : .tus(204, ["Upload-Offset": "1"])
            ]
        }
        defer { server.stop() }
        let program = try TransferQ()
        try program.folder.file("reel", size: 1)
        try await program.succeed("account", "add", "studio", server.url())
        let refused = try await program.run("add", "studio", "reel", "--creation-url", "https://other.example/secret/")
        #expect(
            refused.status == 2 && refused.diagnostics.contains("--setting 'origins=https://other.example'")
                && !refused.diagnostics.contains("secret"), "\(refused.testDescription)")
        try await program.succeed("account", "add", "sftp", "sftp://me@one.example/")
        let unsupported = try await program.run("add", "sftp", "reel", "--creation-url", "https://one.example/")
        #expect(unsupported.status == 2 && unsupported.diagnostics.contains("creation URL"), "\(unsupported.testDescription)")
        let id = try await program.succeed("add", "studio", "reel").lines[0]
        // The same checks apply when a session is changed.
        let changed = try await program.run("set", id, "--creation-url", "https://other.example/secret/")
        #expect(
            changed.status == 2 && changed.diagnostics.contains("--setting 'origins=https://other.example'")
                && !changed.diagnostics.contains("secret"), "\(changed.testDescription)")
        try await program.succeed("set", id, "--creation-url", server.url("/projects/7/"))
        try await program.succeed("run")
        #expect(server.requests.map { "\($0.method) \($0.path)" } == ["OPTIONS /projects/7/", "POST /projects/7/", "PATCH /1"])
    }

    @Test func rejectsImpossibleSessionsFromApps() async throws {
        let folder = try TemporaryFolder()
        try folder.file("reel", size: 1)
        let path = folder.path.appending("reel")
        let queue = try await TransferQueue(
            storage: .folder(folder.path.appending("store")), transports: RegisteredTransports.builtIn.all.map(\.transport))
        try await queue.save(Account("tus", endpoints: [Endpoint(transport: "tus", address: "https://one.example/")]))
        try await queue.save(Account("put", endpoints: [Endpoint(transport: "http", address: "https+put://one.example/")]))
        try await queue.save(Account("sftp", endpoints: [Endpoint(transport: "sftp", address: "sftp://me@one.example/")]))
        for (account, options, named) in [
            ("tus", SessionOptions(headers: ["Upload-Offset": "3"]), "Upload-Offset"),
            ("tus", SessionOptions(metadata: ["transferid": "3"]), "transferid"),
            ("put", SessionOptions(metadata: ["reel": "7"]), "metadataPrefix"),
            ("sftp", SessionOptions(settings: ["upload": "form"]), "setting"),
        ] {
            let error = try await #require(throws: QueueError.self) {
                try await queue.enqueue(.upload([path], to: account, options: options))
            }
            #expect(error.code == .invalidRequest && error.message.contains(named), "\(error.message)")
        }
        var item = TransferItem(path)
        item.uploadURL = "ftp://one.example/capability-4711"
        for account in ["tus", "put"] {
            let error = try await #require(throws: QueueError.self) { try await queue.enqueue(.upload(items: [item], to: account)) }
            #expect(error.code == .invalidRequest && error.message.contains("ftp") && !error.message.contains("4711"))
        }
        var created = TransferItem(path)
        created.creationURL = "https://other.example/capability-4711"
        let untrusted = try await #require(throws: QueueError.self) { try await queue.enqueue(.upload(items: [created], to: "tus")) }
        #expect(untrusted.code == .invalidRequest && untrusted.message.contains("origins") && !untrusted.message.contains("4711"))
        #expect(await queue.status().sessions == 0)
        await queue.shutdown()
    }

    /// Sparse files can be larger than any disk. Only some file systems, such as tmpfs, support such sizes.
    @Test(.enabled(if: memoryDiskSupportsHugeFiles, "Requires a file system at /dev/shm that supports files of 7 EiB"))
    func rejectsAbsurdFileSizes() async throws {
        let program = try TransferQ()
        let folder = memoryDisk.appending("transferq-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        try await program.succeed("account", "add", "studio", "https://one.example/")
        for (size, words) in [(7 << 60, "64 PiB"), (1 << 61, "64 PiB"), (1 << 57, "64 PiB")] as [(Int64, String)] {
            var paths: [String] = []
            for name in ["a", "b"] {
                let path = folder.appending(name)
                try makeSparse(path, size: size)
                paths.append(path.string)
            }
            for added in [paths, ["--each"] + paths, [paths[0]]] {
                let result = try await program.run(["add", "studio"] + added)
                #expect(result.status == 2 && result.lines == [] && result.diagnostics.contains(words), "\(result.testDescription)")
            }
        }
        #expect(try await program.succeed("list", "--json").lines == [])
        let doctor = try await program.run("doctor", "--json")
        #expect(doctor.output.contains("is intact"), "\(doctor.testDescription)")
    }
}
