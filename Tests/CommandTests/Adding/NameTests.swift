import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCore

/// File names are arbitrary bytes except NUL and slash.
@Suite(.serialized) struct NameTests {
    private static let names: [[UInt8]] = [
        [0xFF, 0xFE], [0x61, 0xC3], Array("new\nline".utf8), Array("carriage\rreturn".utf8), Array("tab\tbell\u{07}".utf8),
        Array("\u{1B}[31mred\u{1B}[2J".utf8), Array("c1 \u{9B}31m".utf8), [0x9B, 0x33, 0x31, 0x6D], Array(" space ".utf8),
        Array("-dash".utf8),
        Array("--all".utf8), Array("*?[a]'\"\\$(x)`".utf8), Array("ü u\u{308} 漢字 🎞".utf8), Array("right\u{202E}left".utf8),
        Array(String(repeating: "x", count: 255).utf8), [0xF4, 0x8F, 0x9D, 0xA1],
    ]

    private func createFiles(for program: TransferQ) throws {
        for (index, name) in Self.names.enumerated() {
            let file = try FileDescriptor.open(
                FilePath(bytes: program.folder.path.bytes + [0x2F] + name), .writeOnly, options: .create, permissions: .ownerReadWrite)
            try file.closeAfter { _ = try file.writeAll(repeatElement(UInt8(index), count: index)) }
        }
    }

    @Test(arguments: [true, false])
    func uploadsAllNames(fromStandardInput: Bool) async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            try createFiles(for: program)
            let words: [[UInt8]] = ["add", "studio", "--each"].map { Array($0.utf8) }
            let input: [UInt8] = fromStandardInput ? Self.names.flatMap { $0 + [0] } : []
            let dashes: [UInt8] = Array("--".utf8)
            let paths: [[UInt8]] = fromStandardInput ? [Array("-".utf8)] : Self.names
            let added = try program.start(TransferQ.executable, words + [dashes] + paths, input: input)
            let ids = await added.result()
            try #require(ids.status == 0 && ids.lines.count == Self.names.count, "\(ids.diagnostics)")
            let run = try await program.succeed("run")
            try await program.succeed("watch")

            for (index, name) in Self.names.enumerated() {
                let session = try await studio.session(ids.lines[index])
                let item = try #require((session["items"] as? [[String: Any]])?.first)
                let encoded = (item["sourceBytes"] as? String).flatMap { Data(base64Encoded: $0) }
                let bytes = encoded.map { [UInt8]($0) } ?? Array((item["source"] as? String ?? "").utf8)
                #expect(bytes == program.folder.path.bytes + [0x2F] + name)
                #expect((encoded != nil) == (String(validating: name, as: UTF8.self) == nil))
            }
            let received = try receivedContents(of: studio)
            #expect(Set(received.keys) == Set(Self.names))
            for (index, name) in Self.names.enumerated() { #expect(received[name] == Data(repeating: UInt8(index), count: index)) }

            // No output contains control characters or U+202E, which reverses the direction of text.
            var shown = [run, try await program.succeed("list"), try await program.succeed("watch")]
            for id in ids.lines { shown.append(try await program.succeed("show", id)) }
            for text in shown.flatMap({ [$0.output, $0.diagnostics] }) {
                #expect(!text.unicodeScalars.contains { $0 != "\n" && ($0.properties.generalCategory == .control || $0 == "\u{202E}") })
            }
        }
    }

    @Test(arguments: [false, true]) func resolvesRelativePaths(hasOwner: Bool) async throws {
        try await LoopbackStudio.with { studio in
            let program = studio.program
            let folder = FilePath(bytes: program.folder.path.bytes + [0x2F, 0x61, 0xFF, 0xC3])
            #expect(unsafe folder.withPlatformString { unsafe mkdir($0, 0o700) } == 0)
            let file = try FileDescriptor.open(folder.appending("reel"), .writeOnly, options: .create, permissions: .ownerReadWrite)
            try file.closeAfter { _ = try file.writeAll([1, 2, 3]) }
            let run = hasOwner ? try RunningQueue(program, "--forever") : nil
            try await run?.event("queueStarted")
            let words: [[UInt8]] = ["add", "studio", "reel", "--hold"].map { Array($0.utf8) }
            let added = try await program.start(TransferQ.executable, words, workingFolder: folder).result()
            #expect(added.status == 0, "\(added.testDescription)")
            let id = try #require(added.lines.first)
            let item = try #require((try await studio.session(id)["items"] as? [[String: Any]])?.first)
            let bytes = (item["sourceBytes"] as? String).flatMap { Data(base64Encoded: $0) }
            #expect(bytes == Data(folder.appending("reel").bytes))
            // The destination of a download may be relative too.
            let download: [[UInt8]] = ["add", "studio", "x", "--download", "--to", ".", "--hold"].map { Array($0.utf8) }
            let received = try await program.start(TransferQ.executable, download, workingFolder: folder).result()
            #expect(received.status == 0, "\(received.testDescription)")
            run?.command.send(SIGTERM)
            _ = await run?.command.result()
        }
    }

    @Test func reportsMissingFilesWithUnusualNames() async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        let words: [[UInt8]] = ["add", "studio"].map { Array($0.utf8) }
        let result = try await program.start(TransferQ.executable, words + [[0x1B, 0x5B, 0x41, 0xFF], Array("gone\nfile".utf8)]).result()
        #expect(result.status == 2)
        #expect(result.diagnostics.contains("does not exist") && !result.diagnostics.contains("\u{1B}"))
        // With an invalid remote folder, the command adds no session.
        try program.folder.file("a", size: 1)
        let outside = try await program.start(
            TransferQ.executable, words + ["a", "--to"].map { Array($0.utf8) } + [[0x2E, 0x2E, 0x2F, 0xFF]]
        )
        .result()
        #expect(outside.status == 2)
        #expect(try await program.succeed("list", "--json").output == "")
    }

    /// Returns the contents of the files on the server, keyed by the exact bytes of the names.
    private func receivedContents(of studio: LoopbackStudio) throws -> [[UInt8]: Data] {
        let folder = studio.program.folder.path.appending("server").string
        var files: [[UInt8]: Data] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder) where name.hasSuffix(".json") {
            let record = try CommandResult.object(String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8))
            let pairs = try #require(record["uploadMetadata"] as? String).split(separator: ",")
            let pair = try #require(pairs.first { $0.hasPrefix("filename ") })
            let bytes = try #require(Data(base64Encoded: String(pair.dropFirst("filename ".count))))
            files[[UInt8](bytes)] = try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(name.dropLast(".json".count)).bin"))
        }
        return files
    }
}
