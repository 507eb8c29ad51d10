import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore

/// A download gets the name that the server suggests (RFC 6266) if the account permits this, but never a harmful name.
@Suite struct SuggestedNameTests {
    private static let tag = "\"v1\""

    /// A download of `a.bin` that uses the name from the server.
    private func download(answers: [[ServerStep]]) throws -> TestTransfer {
        var download = try TestTransfer("get", answers: answers)
        download.localName = "a.bin"
        download.endpoint.settings["contentDisposition"] = "true"
        return download
    }

    /// Only a damaged database can contain such a name, because names from servers are checked.
    @Test(arguments: ["..", ".", ""]) func rejectsInvalidNamesInCheckpoints(name: String) async throws {
        let transfer = try TestTransfer("get", answers: [])
        try Data("content".utf8).write(to: URL(fileURLWithPath: transfer.folder.appending(".file.part").string))
        _ = try await transfer.run(from: Checkpoint(data: Data(#"{"name":"\#(name)","length":7}"#.utf8), confirmed: 7))
        #expect(try Self.names(transfer).contains("file"))
        await transfer.end()
    }

    private static func names(_ transfer: TestTransfer) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: transfer.folder.string).sorted()
    }

    @Test(arguments: [
        ("attachment; filename=\"report.pdf\"", "report.pdf"), ("inline;filename=report.pdf", "report.pdf"),
        ("ATTACHMENT; FileName = \"a b.txt\"; size=3", "a b.txt"),
        ("attachment; filename=\"plain.txt\"; filename*=UTF-8''%e2%82%ac%20rates.txt", "€ rates.txt"),
        ("attachment; filename*=iso-8859-1'en'%A3%20rates.txt", "£ rates.txt"),
        ("attachment; filename*=UTF-8''%zz; filename=\"other.txt\"", "other.txt"),
        ("attachment; filename*=UTF-8''%ff.txt; filename=\"other.txt\"", "other.txt"),
        ("attachment; filename=\"a\\\"b;c.txt\"", "a\"b;c.txt"), ("attachment; filename=\"ünï.txt\"", "ünï.txt"),
        ("attachment; x=\"filename=wrong\"; filename=right", "right"),
        // The name is only the last path component, with the separators of any operating system.
        ("attachment; filename=\"../../etc/passwd\"", "passwd"), ("attachment; filename=\"C:\\\\temp\\\\x.txt\"", "x.txt"),
        ("attachment; filename*=UTF-8''..%2F..%2Fevil.sh", "evil.sh"), ("attachment; filename=\"/abs\"", "abs"),
        ("attachment; filename*=UTF-8''%2e%2e; filename=\"next.txt\"", "next.txt"),
        // The resulting name is not hidden, and contains no invisible characters.
        ("attachment; filename=\".bashrc\"", "bashrc"), ("attachment; filename=\"-rf x\"", "rf x"),
        ("attachment; filename=\"~root\"", "root"),
        ("attachment; filename=\"-.-\"", "a.bin"), ("attachment; filename=\"C:\\temp\\odd.txt\"", "odd.txt"),
        ("attachment; filename*=UTF-8''%+f; filename=other", "other"), ("attachment; filename=\" .. .x. \"", "x"),
        ("attachment; filename*=UTF-8''a%00b%0A%1B%E2%80%AEc.txt", "abc.txt"),
        // A combining mark after a delimiter does not hide the delimiter.
        ("attachment; filename=\"a/\u{301}b\\\u{619}c.txt\"", "\u{619}c.txt"), ("attachment;\u{301}x=1; filename=right", "right"),
        ("attachment; filename=\u{301}x", "\u{301}x"), ("attachment; filename=a;\u{301}b=c", "a"),
        ("attachment; filename=\"a\"\u{301}; filename=b", "a"), ("attachment; filename=\"\u{301}a;b\"", "\u{301}a;b"),
        ("attachment; filename*=UTF-8'\u{301}'x", "x"),
        // Nothing remains of the name, so the file gets the requested name.
        ("attachment; filename=\"..\"", "a.bin"), ("attachment; filename=\"\"", "a.bin"), ("attachment; filename=\"a/\"", "a.bin"),
        ("attachment; filename*=UTF-8''%00", "a.bin"), ("attachment", "a.bin"), ("attachment; filename", "a.bin"), (";;;=;\"", "a.bin"),
        ("attachment; filename=\"", "a.bin"), ("attachment; filename*=UTF-8''%E", "a.bin"), ("attachment; filename=\"x\\", "a.bin"),
    ])
    func sanitizesName(header: String, expected: String) async throws {
        let download = try download(answers: [[.answer(200, ["Content-Disposition": header], body: "0123456789")]])
        let receipt = try await download.run()
        #expect(try Self.names(download) == [".file.part", expected])
        #expect(receipt.localPath == (expected == "a.bin" ? nil : download.folder.appending(expected)))
        await download.end()
    }

    @Test(arguments: [String(repeating: "x", count: 400) + ".pdf", String(repeating: "é", count: 300) + ".pdf"])
    func truncatedNameKeepsExtension(name: String) async throws {
        let download = try download(answers: [[.answer(200, ["Content-Disposition": "attachment; filename=\"\(name)\""], body: "0")]])
        let path = try #require(try await download.run().localPath?.lastComponent?.string)
        #expect(path.hasSuffix(".pdf") && path.utf8.count <= 255 && path.utf8.count >= 250 && name.hasPrefix(path.dropLast(4)))
        await download.end()
    }

    /// The name begins with a letter whose accents alone exceed the limit. If this letter were removed, the name of a hidden file would remain.
    @Test func truncatesLongNameWithinOneCharacter() async throws {
        let header = "attachment; filename*=UTF-8''a" + String(repeating: "%CC%81", count: 130) + ".bashrc"
        let download = try download(answers: [[.answer(200, ["Content-Disposition": header], body: "0")]])
        let name = try #require(try await download.run().localPath?.lastComponent?.string)
        #expect(name.utf8.count <= 255 && name.unicodeScalars.first == "a" && name.hasSuffix(".bashrc"))
        await download.end()
    }

    /// Another file of the same session may already have the name that the server chose.
    @Test(arguments: OverwritePolicy.allCases) func doesNotReplaceExistingFile(policy: OverwritePolicy) async throws {
        var download = try download(answers: [[.answer(200, ["Content-Disposition": "attachment; filename=x.txt"], body: "0123456789")]])
        download.overwrite = policy
        try Data("mine".utf8).write(to: URL(fileURLWithPath: download.folder.appending("x.txt").string))
        if policy == .rename {
            #expect(try await download.run().localPath == download.folder.appending("x (1).txt"))
        } else {
            let error = await download.failure()
            #expect(error?.code == (policy == .never ? .fileExists : .unsupported))
        }
        #expect(FileManager.default.contents(atPath: download.folder.appending("x.txt").string) == Data("mine".utf8))
        await download.end()
    }

    /// The process is killed before the queue stores the completion, and the server would send another name in response to a second request. The
    /// download keeps the first name.
    @Test(arguments: ["", "0123456789"]) func storesSuggestedNameBeforeUsingIt(body: String) async throws {
        func answer(_ name: String) -> [ServerStep] { [.answer(200, ["Content-Disposition": "attachment; filename=\(name)"], body: body)] }
        let download = try download(answers: [answer("one"), answer("two")])
        #expect(try await download.run().localPath == download.folder.appending("one"))
        let checkpoint = try #require(download.recorder.checkpoints.last)
        #expect(try await download.run(from: checkpoint).localPath == download.folder.appending("one"))
        #expect(try Self.names(download) == [".file.part", "one"] && download.server.requests.count == 1)
        // The download also keeps the name if the process is killed before the part file gets its final name.
        try FileManager.default.removeItem(atPath: download.folder.appending("one").string)
        #expect(try await download.run(from: checkpoint).localPath == download.folder.appending("one"))
        #expect(try Self.names(download) == [".file.part", "one"] && download.server.requests.count == 1)
        await download.end()
    }

    /// The response to the second request repeats the content coding, but not the name.
    @Test func resumesEncodedFileWithItsName() async throws {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \(Self.tag)\r\nContent-Encoding: gzip\r\n"
            + "Content-Disposition: attachment; filename=x.tar.gz\r\n\r\n0123"
        let rest: ServerStep = .answer(
            206, ["ETag": Self.tag, "Content-Range": "bytes 4-9/10", "Content-Encoding": "gzip"], body: "456789")
        let download = try download(answers: [[.raw(head), .close], [rest]])
        #expect(await download.failure()?.failureClass == .transient)
        let checkpoint = try #require(download.recorder.checkpoints.last)
        #expect(try await download.run(from: checkpoint).localPath == download.folder.appending("x.tar.gz"))
        await download.end()
    }

    @Test func ignoresSuggestedNameWithoutSetting() async throws {
        var download = try download(answers: [[.answer(200, ["Content-Disposition": "attachment; filename=x"], body: "0123456789")]])
        download.endpoint.settings = [:]
        #expect(try await download.run().localPath == nil)
        #expect(try Self.names(download) == [".file.part", "a.bin"])
        await download.end()
    }

    @Test func nameFromAppTakesPrecedence() async throws {
        var download = try download(answers: [[.answer(200, ["Content-Disposition": "attachment; filename=x"], body: "0123456789")]])
        download.localName = "own.bin"
        #expect(try await download.run().localPath == nil)
        #expect(try Self.names(download) == [".file.part", "own.bin"])
        await download.end()
    }

    /// The first response determines the name, regardless of later responses, even after the process is killed.
    @Test func keepsNameAcrossAttempts() async throws {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \(Self.tag)\r\nContent-Disposition: attachment; filename=first.txt\r\n\r\n0123"
        let rest: ServerStep = .answer(
            206, ["ETag": Self.tag, "Content-Range": "bytes 4-9/10", "Content-Disposition": "attachment; filename=second.txt"],
            body: "456789")
        let download = try download(answers: [[.raw(head), .close], [rest]])
        #expect(await download.failure()?.failureClass == .transient)
        let checkpoint = try #require(download.recorder.checkpoints.last)
        #expect(checkpoint.confirmed == 4)
        #expect(try await download.run(from: checkpoint).localPath == download.folder.appending("first.txt"))
        #expect(try Self.names(download) == [".file.part", "first.txt"])
        // Simulates a kill before the completion is stored. The file already has its name, so it is neither downloaded nor renamed again.
        let requests = download.server.requests.count
        #expect(
            try await download.run(from: Checkpoint(data: checkpoint.data, confirmed: 4)).localPath
                == download.folder.appending("first.txt"))
        #expect(try Self.names(download) == [".file.part", "first.txt"] && download.server.requests.count == requests)
        await download.end()
    }

    @Test func reportsExistingFileWithSuggestedName() async throws {
        let download = try download(answers: [[.answer(200, ["Content-Disposition": "attachment; filename=x"], body: "0123456789")]])
        try Data("mine".utf8).write(to: URL(fileURLWithPath: download.folder.appending("x").string))
        let error = await download.failure()
        #expect(error?.code == .fileExists && error?.message.contains("/x") == true)
        #expect(FileManager.default.contents(atPath: download.folder.appending("x").string) == Data("mine".utf8))
        await download.end()
    }

    /// The suggested name shows that the coding belongs to the file.
    @Test func acceptsEncodedFileWithSuggestedName() async throws {
        let headers = ["Content-Disposition": "attachment; filename=x.tar.gz", "Content-Encoding": "gzip"]
        let download = try download(answers: [[.answer(200, headers, body: "0123456789")]])
        #expect(try await download.run().localPath == download.folder.appending("x.tar.gz"))
        await download.end()
    }
}
