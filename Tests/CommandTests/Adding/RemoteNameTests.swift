import Foundation
import SystemPackage
import Testing
import TransferCommands
import TransferCore

/// Remote names of files, names of sessions, and options that some endpoints do not support.
@Suite struct RemoteNameTests {
    private func program() throws -> TransferQ {
        let program = try TransferQ()
        for folder in ["one", "two"] {
            try FileManager.default.createDirectory(atPath: program.folder.path.appending(folder).string, withIntermediateDirectories: true)
            try program.folder.file("\(folder)/reel", size: 1)
        }
        return program
    }

    /// If the command accepted both files, only one of them would arrive.
    @Test(arguments: [
        "sftp://me@one.example/in/", "https+put://one.example/in/", "https+put://one.example/{name}", "https+form://one.example/",
    ])
    func rejectsFilesWithSameName(address: String) async throws {
        let program = try program()
        try await program.succeed("account", "add", "place", address)
        for options in [[], ["--each"], ["--to", "day"]] {
            let refused = try await program.run(["add", "place", "one/reel", "two/reel"] + options)
            #expect(refused.status == 2, "\(refused.testDescription)")
            for path in ["one/reel", "two/reel"] {
                #expect(refused.diagnostics.contains(program.folder.path.pushing(FilePath(path)).string), "\(refused.diagnostics)")
            }
        }
        #expect(try await program.succeed("list", "--json").lines == [])
        // Both paths name the same file, so no file can be lost.
        try await program.succeed("add", "place", "one/reel", "./one/reel")
    }

    /// Folders with the same name are rejected if a file in one folder could replace a file in the other.
    @Test(
        arguments: [
            (["https+put://one.example/"], [], 2), (["sftp://me@one.example/"], ["--overwrite", "always"], 2),
            (["https://one.example/", "https+put://two.example/"], [], 2), (["sftp://me@one.example/"], [], 0),
            (["https://one.example/"], [], 0),
        ] as [([String], [String], Int32)])
    func rejectsFoldersWithSameName(addresses: [String], options: [String], status: Int32) async throws {
        let program = try program()
        try await program.succeed(["account", "add", "place"] + addresses)
        let added = try await program.run(["add", "place", "one", "two/../two/../one/../two", "--to", "day"] + options)
        #expect(added.status == 0, "the folders have different names: \(added.testDescription)")
        for folder in ["one/clips", "two/clips"] {
            try FileManager.default.createDirectory(atPath: program.folder.path.string + "/" + folder, withIntermediateDirectories: true)
            try program.folder.file("\(folder)/clip.mov", size: 1)
        }
        let clashing = try await program.run(["add", "place", "one/clips", "two/clips"] + options)
        #expect(clashing.status == status, "\(clashing.testDescription)")
        #expect(status == 0 ? clashing.warnings == "" : clashing.diagnostics.contains("--to"), "\(clashing.diagnostics)")
    }

    @Test(arguments: [
        ("https://one.example/", []), ("https+form://one.example/{transfer}", []),
        ("https+form://one.example/", ["--setting", "field.id={transfer}"]), ("https+put://one.example/{transfer}/{name}", []),
        ("https+put://one.example/", ["--setting", "upload=form", "--setting", "field.id=x{transfer}"]),
    ])
    func acceptsSameNameIfFilesAreStoredSeparately(address: String, options: [String]) async throws {
        let program = try program()
        try await program.succeed("account", "add", "place", address)
        let added = try await program.run(["add", "place", "one/reel", "two/reel"] + options)
        #expect(added.status == 0 && added.lines.count == 1, "\(added.testDescription)")
        #expect(added.diagnostics.contains("one/reel") && added.diagnostics.contains("two/reel"), "\(added.diagnostics)")
        #expect(try await program.succeed("add", "place", "one/reel").warnings == "")
    }

    @Test(arguments: [(".", "one"), ("..", nil), ("./", "one"), ("../two/.", "two")] as [(String, String?)])
    func namesSessionAfterFolder(path: String, name: String?) async throws {
        let program = try program()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let folder = program.folder.path.appending("one")
        let words = ["add", "studio", path].map { Array($0.utf8) }
        let added = await (try program.start(TransferQ.executable, words, workingFolder: folder)).result()
        #expect(added.status == 0, "\(added.testDescription)")
        let session = try #require(try await program.succeed("list", "--json").objects().first)
        #expect(session["name"] as? String == name ?? program.folder.path.lastComponent?.string)
    }

    @Test func rejectsRootFolder() async throws {
        let program = try program()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let refused = try await program.run("add", "studio", "/")
        #expect(refused.status == 2 && refused.diagnostics.contains("/ is the root"), "\(refused.testDescription)")
    }

    @Test(
        arguments: [
            ("https+put://one.example/", ["--chunk", "1M"], "--chunk"), ("https+form://one.example/", ["--chunk", "1M"], "--chunk"),
            ("sftp://me@one.example/", ["--chunk", "1M"], "--chunk"), ("https+put://one.example/", ["--parallel", "4"], "--parallel"),
            ("https://one.example/", ["--chunk", "1M", "--parallel", "4"], nil), ("sftp://me@one.example/", ["--parallel", "4"], nil),
            ("https+put://one.example/", ["--parallel", "4", "other"], nil),
        ] as [(String, [String], String?)])
    func warnsAboutOptionsWithoutEffect(address: String, options: [String], named: String?) async throws {
        let program = try program()
        try program.folder.file("other", size: 1)
        try await program.succeed("account", "add", "place", address)
        let added = try await program.run(["add", "place", "one/reel"] + options)
        #expect(added.status == 0 && added.lines.count == 1, "\(added.testDescription)")
        guard let named else { return #expect(added.warnings == "") }
        #expect(added.diagnostics.contains("\(named) has no effect") && added.diagnostics.contains("one.example"), "\(added.diagnostics)")
    }

    /// A tus server stores each upload as a new file, so an upload never replaces a file with the same name.
    @Test(
        arguments: [
            ("never", [], 0, nil), ("rename", [], 0, nil), ("always", [], 0, "has no effect"), ("skip", [], 2, "new upload"),
            ("different", [], 2, "new upload"), ("newer", [], 2, "new upload"), ("never", ["sftp://me@two.example/"], 0, nil),
            ("newer", ["sftp://me@two.example/"], 0, "only to uploads to sftp"),
            ("always", ["sftp://me@two.example/"], 0, "only to uploads to sftp"),
        ] as [(String, [String], Int32, String?)])
    func checksOverwritePolicy(policy: String, others: [String], status: Int32, words: String?) async throws {
        let program = try program()
        _ = try await program.run(["account", "add", "place", "https://one.example/"] + others)
        let added = try await program.run("add", "place", "one/reel", "--overwrite", policy)
        #expect(added.status == status && added.lines.count == (status == 0 ? 1 : 0), "\(added.testDescription)")
        guard let words else { return #expect(added.warnings == "") }
        #expect(added.diagnostics.contains("--overwrite \(policy)") && added.diagnostics.contains(words), "\(added.diagnostics)")
        let received = try await program.run("add", "place", "other", "--download", "--overwrite", policy)
        #expect(received.status == 0 && received.warnings == "", "\(received.testDescription)")
    }

    @Test(
        arguments: [
            ("https+put://one.example/", ["--metadata", "k=v"], "metadata"),
            ("https+form://one.example/", ["--verify", "checksum"], "verified"), ("https+get://one.example/", [], "download"),
            ("https+form://one.example/", ["--metadata", "k=v"], nil),
        ] as [(String, [String], String?)])
    func rejectsImpossibleSessions(address: String, options: [String], named: String?) async throws {
        let program = try program()
        try await program.succeed("account", "add", "place", address)
        let added = try await program.run(["add", "place", "one/reel"] + options)
        #expect(added.status == (named == nil ? 0 : 2), "\(added.testDescription)")
        if let named { #expect(added.diagnostics.contains(named), "\(added.testDescription)") }
        // The added endpoint can perform the session.
        try await program.succeed("account", "edit", "place", address, "https://two.example/")
        #expect(try await program.run(["add", "place", "one/reel"] + options).status == 0)
    }

    /// A remote name with a trailing slash names a folder. Not every endpoint can list folders.
    @Test(
        arguments: [
            (["https://one.example/"], "sub/", "The transport \"tus\" can't list folders"),
            (["https+get://one.example/"], "in/sub/", "set the account's setting webDAV to true"),
            (["https://one.example/", "https+put://two.example/"], "sub/", "The transport \"tus\" can't list folders"),
            (["https+put://one.example/", "--setting", "webDAV=true"], "sub/", nil), (["https://one.example/"], "sub", nil),
            (["https://one.example/", "sftp://me@two.example/"], "sub/", nil), (["sftp://me@one.example/"], "sub/", nil),
        ] as [([String], String, String?)])
    func rejectsFoldersThatCannotBeListed(addresses: [String], name: String, refusing: String?) async throws {
        let program = try program()
        _ = try await program.run(["account", "add", "place"] + addresses)
        for result in [
            try await program.run("add", "place", "file", name, "--download"),
            try await program.run(["add", "place", "--download", "--each", "-"], input: Array("file\n\(name)\n".utf8)),
        ] {
            #expect(result.status == (refusing == nil ? 0 : 2) && result.lines.isEmpty == (refusing != nil), "\(result.testDescription)")
            guard let refusing else { continue }
            #expect(result.diagnostics.contains(refusing), "\(result.diagnostics)")
            #expect(result.diagnostics.contains(name) && result.diagnostics.contains("one.example"), "\(result.diagnostics)")
        }
        if refusing != nil { #expect(try await program.succeed("list", "--json").lines == []) }
    }

    /// A setting or checksum that no endpoint supports is rejected. A setting that only one endpoint supports is accepted.
    @Test(
        arguments: [
            (["https://one.example/"], ["--setting", "nosuch=1"], "TUS"), (["sftp://me@one.example/"], ["--setting", "nosuch=1"], "SFTP"),
            (["https://one.example/", "sftp://me@one.example/"], ["--setting", "nosuch=1"], "TUS"),
            (["https+put://one.example/", "https://one.example/"], ["--setting", "nosuch=1"], "nosuch"),
            (["https://one.example/", "https+put://one.example/"], ["--setting", "nosuch=1"], "nosuch"),
            (["https://one.example/"], ["--checksum", "md5:\(String(repeating: "0", count: 32))"], "checksum"),
            (["https://one.example/", "https+put://one.example/"], ["--setting", "contentType=a/b"], nil),
        ] as [([String], [String], String?)])
    func rejectsInvalidSettings(addresses: [String], options: [String], named: String?) async throws {
        let program = try program()
        _ = try await program.run(["account", "add", "place"] + addresses)
        let added = try await program.run(["add", "place", "one/reel"] + options)
        #expect(added.status == (named == nil ? 0 : 2), "\(added.testDescription)")
        if let named { #expect(added.diagnostics.contains(named), "\(added.testDescription)") }
    }

    /// The metadata is invalid only for the fallback. The command rejects the metadata anyway, because success must not depend on which server is
    /// available at the time of the transfer.
    @Test func rejectsMetadataInvalidForFallback() async throws {
        let program = try program()
        let endpoints = ["sftp://me@one.example/", "https+put://two.example/"]
        #expect(try await program.run(["account", "add", "place"] + endpoints + ["--setting", "http:metadataPrefix=X-"]).status == 0)
        for options in [["--metadata", "a b=1"], ["--metadata", "é=1", "--each"]] {
            let refused = try await program.run(["add", "place", "one/reel", "two"] + options)
            #expect(refused.status == 2 && refused.diagnostics.contains("not a header name"), "\(refused.testDescription)")
        }
        #expect(try await program.succeed("list", "--json").lines == [])
        #expect(try await program.run("add", "place", "one/reel", "--metadata", "ab=1").status == 0)
    }

    /// The server merges folders. No file can be lost, because an upload fails if a file with the same name exists.
    @Test func acceptsFoldersWithSameNameButNotFolderAndFile() async throws {
        let program = try program()
        for folder in ["one/stills", "two/stills", "three"] {
            let path = program.folder.path.pushing(FilePath(folder)).string
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        try await program.succeed("account", "add", "place", "sftp://me@one.example/in/")
        #expect(try await program.succeed("add", "place", "one/stills", "two/stills").warnings == "")
        try program.folder.file("three/stills", size: 1)
        #expect(try await program.run("add", "place", "one/stills", "three/stills").status == 2)
    }

    @Test(arguments: [
        ("never", "second one would be rejected"), ("skip", "second one would be skipped"), ("always", "replace the other"),
        ("newer", "replace the other"), ("different", "replace the other"),
    ])
    func explainsRejectedNames(policy: String, words: String) async throws {
        let program = try program()
        try await program.succeed("account", "add", "place", "sftp://me@one.example/in/")
        let refused = try await program.run("add", "place", "one/reel", "two/reel", "--overwrite", policy)
        #expect(refused.status == 2 && refused.diagnostics.contains(words), "\(refused.testDescription)")
        #expect(refused.diagnostics.contains("--overwrite rename"), "\(refused.diagnostics)")
        let added = try await program.run("add", "place", "one/reel", "two/reel", "--overwrite", "rename")
        #expect(added.status == 0 && added.diagnostics.contains("separate files"), "\(added.testDescription)")
    }

    /// Many sessions never need the fallback endpoint. A name clash there is therefore rejected only if a file would be lost.
    @Test(arguments: [("sftp://me@two.example/", 0, "rejected"), ("https+put://two.example/", 2, "replace the other")])
    func rejectsClashAtFallbackOnlyIfFileIsLost(address: String, status: Int32, words: String) async throws {
        let program = try program()
        try await program.succeed("account", "add", "place", "https://one.example/", address)
        let added = try await program.run("add", "place", "one/reel", "two/reel")
        #expect(added.status == status && added.diagnostics.contains(words), "\(added.testDescription)")
        #expect(added.diagnostics.contains("two.example"))
    }

    /// An item's URL replaces the account's address. Files can then clash, even if the account's address would keep them separate.
    @Test func checksNameClashesAtURLOfItem() async throws {
        let program = try program()
        try await program.succeed("account", "add", "place", "https+put://one.example/{transfer}/")
        let url = ["--setting", "uploadURL.reel=https://one.example/a?signature=x"]
        #expect(try await program.run(["add", "place", "one/reel", "two/reel"] + url).status == 2)
        #expect(try await program.run(["add", "place", "one/reel", "two/reel"] + url + ["--setting", "upload=form"]).status == 2)
        let form = ["--setting", "upload=form", "--setting", "field.id={transfer}"]
        #expect(try await program.run(["add", "place", "one/reel", "two/reel"] + url + form).status == 0)
        #expect(try await program.run(["add", "place", "one/reel"] + url).status == 0)
    }

    /// The queue stores a context exactly as written, including the digits of its numbers.
    @Test(arguments: ["1.0", "1.50", "123456789012345678901234567890", "{\"a\":1.50, \"b\":1e5,\"a\":-0}", "[ 1 ]"])
    func preservesContexts(context: String) async throws {
        let program = try program()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let id = try await program.succeed("add", "studio", "one/reel", "--context", context).lines[0]
        for command in [["list"], ["show", id]] {
            #expect(try await program.run(command + ["--json"]).output.contains("\"context\":\(context),"))
        }
        #expect(try await program.succeed("show", id).output.contains("Context:   \(context)\n"))
    }
}

extension CommandResult {
    /// The diagnostics without the note that no process runs the queue.
    fileprivate var warnings: String {
        diagnostics.split(separator: "\n").filter { !$0.hasPrefix("No process runs this queue.") }.joined(separator: "\n")
    }
}
