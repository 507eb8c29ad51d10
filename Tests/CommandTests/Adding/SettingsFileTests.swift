import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite struct SettingsFileTests {
    private static let needle = "signature=n33dle"

    private func program(_ address: String = "https+put://one.example/") async throws -> TransferQ {
        let program = try TransferQ()
        for name in ["a", "b"] { try program.folder.file(name, size: 3) }
        try await program.succeed("account", "add", "bucket", address)
        return program
    }

    @Test(arguments: [true, false]) func uploadsToSignedURLs(isPiped: Bool) async throws {
        let server = try ScriptedServer { _, _ in [.answer(201)] }
        defer { server.stop() }
        let program = try await program("http+put://127.0.0.1:\(server.port)/")
        let text = """
            # Signed this morning
            uploadURL.a=\(server.url("/1?\(Self.needle)"))\r

              # and this one later
            contentType=text/x-own
            uploadURL.b=\(server.url("/2?x=1"))
            """
        let file = try program.folder.file("settings", bytes: Array(text.utf8))
        let added = try await program.run(
            ["add", "bucket", "a", "b", "-v", "--settings-file", isPiped ? "-" : file.string], input: isPiped ? Array(text.utf8) : [])
        #expect(added.status == 0 && !added.diagnostics.contains(Self.needle), "\(added.testDescription)")
        let run = try await program.succeed("run", "--progress", "json", "-vv")
        // Both files are in flight at the same time, so the requests may arrive in any order.
        #expect(Set(server.requests.map(\.path)) == ["/1?\(Self.needle)", "/2?x=1"])
        #expect(server.requests.allSatisfy { $0.headers["content-type"] == "text/x-own" })
        let shown = try await program.succeed("show", added.lines[0], "--json")
        #expect(!(run.output + run.diagnostics + shown.output).contains(Self.needle))
    }

    @Test(arguments: [
        ("a=1\n\nn33dle\n", "Line 3"), ("=n33dle", "Line 1"), ("# a\nx=n33dle\nx=n33dle", "Line 3"), ("contentType=n33dle/\u{FF}", "UTF-8"),
        ("contentType=n33dle", "settings file"),
    ])
    func reportsInvalidLines(text: String, words: String) async throws {
        let program = try await program()
        // U+00FF in the text stands for the byte FF, which is invalid in UTF-8.
        try program.folder.file("settings", bytes: text.unicodeScalars.map { UInt8($0.value) })
        let refused = try await program.run("add", "bucket", "a", "--setting", "contentType=b/c", "--settings-file", "settings")
        #expect(refused.status == 2 && refused.diagnostics.contains(words), "\(refused.testDescription)")
        #expect(!refused.diagnostics.contains("n33dle"), "\(refused.diagnostics)")
        #expect(try await program.succeed("list", "--json").lines == [])
    }

    @Test func rejectsInvalidFiles() async throws {
        let program = try await program()
        let file = try program.folder.file("settings", bytes: Array("contentType=a/b".utf8))
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file.string)
        try program.folder.sparseFile("large", size: 1 << 30)
        for (name, words) in [
            ("settings", "chmod 600"), (".", "neither a file"), ("/dev/zero", "neither a file"), ("large", "more than"), ("c", "No such"),
        ] {
            let refused = try await program.run("add", "bucket", "a", "--settings-file", name)
            #expect(refused.status == 2 && refused.diagnostics.contains(words), "\(refused.testDescription)")
        }
        #expect(try await program.succeed("list", "--json").lines == [])
    }

    @Test(arguments: [["-"], ["a", "--stdin"]]) func rejectsTwoUsesOfStandardInput(paths: [String]) async throws {
        let refused = try await program().run(["add", "bucket"] + paths + ["--settings-file", "-"], input: Array("a\n".utf8))
        #expect(refused.status == 2 && refused.diagnostics.contains("only once"), "\(refused.testDescription)")
    }

    // MARK: The API

    @Test func hidesValuesInDescriptions() throws {
        let options = SessionOptions(settings: ["uploadURL.a": "https://one.example/?\(Self.needle)"])
        var request = try SessionRequest.upload(["a"], to: "bucket", options: options)
        request.name = "a"
        var dumped = ""
        dump(request, to: &dumped)
        for text in ["\(options)", String(reflecting: options), "\(request)", dumped] {
            #expect(text.contains("uploadURL.a") && !text.contains(Self.needle), "\(text)")
        }
        // The encoded options contain the values, in the member `settings`.
        let stored = try JSONEncoder().encode(options)
        let object = try #require(try JSONSerialization.jsonObject(with: stored) as? [String: Any])
        #expect(object["settings"] as? [String: String] == options.settings)
        #expect(try JSONDecoder().decode(SessionOptions.self, from: stored) == options)
    }

    /// Some JSON parsers can't read a line that contains a number outside the range of a Double.
    @Test(arguments: ["1e400", "[-1e999]"]) func rejectsContextsWithHugeNumbers(context: String) async throws {
        let program = try await program()
        let refused = try await program.run("add", "bucket", "a", "--context", context)
        #expect(refused.status == 2 && refused.diagnostics.contains("number that is out of range"), "\(refused.testDescription)")
        let queue = try await TransferQueue(storage: .folder(program.store), transports: [])
        var request = try SessionRequest.upload([program.folder.path.appending("a")], to: "bucket")
        request.context = Data(context.utf8)
        let error = await #expect(throws: QueueError.self) { try await queue.enqueue(request) }
        #expect(error?.code == .invalidRequest && error?.message.contains("too large for Double") == true)
        await queue.shutdown()
    }

    // MARK: Credentials

    @Test func rejectsInvalidCredentialFiles() async throws {
        let folder = try TemporaryFolder()
        func secret(_ path: FilePath) async throws -> String {
            try await ReferencedCredentials().secret(for: .bearer(.file(path.string))).reveal()
        }
        let large = try folder.file("large", bytes: Array(repeating: 0x61, count: 1 << 16))
        #expect(try await secret(large).utf8.count == 1 << 16)
        try folder.sparseFile("larger", size: 1 << 16 + 1)
        try folder.sparseFile("huge", size: 1 << 40)
        for (name, words) in [
            ("larger", "more than the 65536 bytes"), ("huge", "more than the 65536 bytes"), ("/dev/zero", "neither a file nor a pipe"),
            (".", "neither a file nor a pipe"), ("missing", "No such file"),
        ] {
            let error = await #expect(throws: TransferError.self) { _ = try await secret(folder.path.pushing(FilePath(name))) }
            #expect(error?.failureClass == .credentials && error?.message.contains(words) == true, "\(name): \(error?.message ?? "")")
        }
    }

    /// A shell passes `<(…)` as a pipe, which keeps a secret out of the file system.
    @Test func readsSecretFromPipe() async throws {
        let folder = try TemporaryFolder()
        let pipe = folder.path.appending("pipe")
        #expect(unsafe mkfifo(pipe.string, 0o600) == 0)
        async let secret = ReferencedCredentials().secret(for: .bearer(.file(pipe.string)))
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread {
                continuation.resume(
                    with: Result {
                        let end = try FileDescriptor.open(pipe, .writeOnly)
                        try end.closeAfter { _ = try end.writeAll(Array("s3cret\n".utf8)) }
                    })
            }
        }
        #expect(try await secret.reveal() == "s3cret")
    }
}
