import Foundation
import SSHFixture
import ScriptedHTTP
import SystemPackage
import TUSLoopback
import Testing

/// The cost of one small file in `transferq run`, in counts that depend little on the speed of the machine. The limits are about 1.5
/// times the counts of a debug build on an idle machine, because fewer files share a commit on a busy machine. If a change of the code makes a count
/// exceed its limit, find out why before you raise the limit.
///
/// `Tests/Benchmarks/run --check` runs only this suite.
@Suite(.timeLimit(.minutes(10))) struct CostTests {
    private static let limits = "Tests/Benchmarks/limits.json"
    /// The numbers of files in the two runs that the tests compare. The cost of starting and ending a run cancels out in the difference.
    private static let (fewFiles, manyFiles) = (40, 240)
    private static let fileSize = 4_096

    @Test func smallFileOverTUSCostsLittle() async throws {
        let folder = try TemporaryFolder()
        let server = TUSLoopbackServer(folder: folder.path.appending("uploads"))
        let url = try await server.start()
        try await check("tus", account: [url.absoluteString])
        await server.stop()
    }

    @Test func smallFileByPutCostsLittle() async throws {
        let server = try ScriptedServer { _, _ in [.answer(201)] }
        defer { server.stop() }
        try await check("http", account: ["http+put://127.0.0.1:\(server.port)/{path}"])
    }

    @Test func smallFileOverSFTPCostsLittle() async throws {
        let server = try await SSHServerProcess.start()
        defer { server.stop() }
        let folder = FilePath(server.folder.path).appending("files")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
        try await check(
            "sftp",
            account: [
                "sftp://\(server.user)@127.0.0.1:\(server.port)\(folder.string)/", "--identity", server.userKey, "--known-hosts", "hosts",
                "--host-key", "accept-new",
            ])
    }

    /// Uploads few files, then many files, and compares the counts for one file with the limits.
    private func check(_ transport: String, account: [String]) async throws {
        let limits = try JSONDecoder().decode([String: [String: Double]].self, from: Data(contentsOf: URL(filePath: Self.limits)))
        let few = try await counts(account, files: Self.fewFiles)
        let many = try await counts(account, files: Self.manyFiles)
        for (name, limit) in try #require(limits[transport]).sorted(by: { $0.key < $1.key }) {
            let count = try (#require(many[name]) - #require(few[name])) / Double(Self.manyFiles - Self.fewFiles)
            print("\(transport): \(String(format: "%.2f", count)) \(name) for each file of \(Self.fileSize) bytes (at most \(limit))")
            #expect(count > 0 && count <= limit, "\(transport): \(name)")
        }
    }

    /// Uploads new files, and returns the counts of the run by name, such as `syncs`.
    private func counts(_ account: [String], files: Int) async throws -> [String: Double] {
        var program = try TransferQ()
        program.environment = ["SSH_AUTH_SOCK": ""]
        let library = program.folder.path.appending("count-work.so")
        let code = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Benchmarks/Peers/count-work.c").path
        let words = ["cc", "-O2", "-shared", "-fPIC", "-o", library.string, code, "-ldl"]
        try await program.start("/usr/bin/env", words.map { Array($0.utf8) }).result().expectSuccess()
        try await program.succeed(["account", "add", "studio"] + account)
        try FileManager.default.createDirectory(atPath: program.folder.path.appending("in").string, withIntermediateDirectories: false)
        for number in 0..<files { try program.folder.file("in/\(number)", size: Self.fileSize, seed: UInt64(number)) }
        try await program.succeed("upload", "studio", "in", "--to", "\(files)")
        let output = program.folder.path.appending("counts")
        program.environment.merge(["LD_PRELOAD": library.string, "WORK_COUNTS": output.string]) { $1 }
        try await program.succeed("run", "--progress", "none")
        let lines = try String(contentsOfFile: output.string, encoding: .utf8).split(separator: "\n")
        return Dictionary(
            uniqueKeysWithValues: lines.compactMap { line in
                let words = line.split(separator: " ")
                return words.count == 2 ? Double(words[1]).map { (String(words[0]), $0) } : nil
            })
    }
}
