import Foundation
import Testing

/// All code in the articles comes from `Articles/` or from the sample of a transport, so it compiles.
@Suite struct ArticleTests {
    @Test(arguments: Catalog.articles) func codeCompiles(article: String) throws {
        // Tests/check-samples verifies the code blocks that contain lines of a package manifest.
        let shown = try Catalog.code(in: article).filter { code in
            try code.first?.hasPrefix(".package(") != true && !Catalog.isInTransportSample(code)
        }
        let compiled = try Catalog.compiledCode(of: article)
        #expect(shown.count == compiled.count)
        for (shown, compiled) in zip(shown, compiled) { #expect(shown == compiled) }
    }

    /// A website that hosts the repository shows a `<doc:…>` link as source text. Only the section Topics needs such links.
    @Test(arguments: Catalog.articles) func linksHaveTexts(article: String) throws {
        let text = try String(contentsOf: Catalog.file(of: article), encoding: .utf8).components(separatedBy: "\n## Topics")[0]
        #expect(!text.contains("<doc:"))
    }

    @Test func articlesAreFound() {
        #expect(Catalog.articles.contains("GettingStarted"))
        #expect(Catalog.articles.contains("TUSAccounts"))
        #expect(Catalog.articles.contains("SFTPAccounts"))
        #expect(Catalog.articles.contains("TransferControl"))
        #expect(Catalog.articles.contains("TransferFleet"))
        #expect(Catalog.articles.contains("Troubleshooting"))
    }
}

/// The articles of the documentation, and their code.
enum Catalog {
    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    static let package = tests.deletingLastPathComponent().deletingLastPathComponent()

    /// The folders of articles, except the folder of `TransportHTTP`: the code of its articles is in `InteropTests`, which also run the code.
    private static let folders: [URL] = ["Sources", "Plugins"].flatMap { name in
        let files = FileManager.default.enumerator(at: package.appending(path: name), includingPropertiesForKeys: nil)
        let catalogs = (files?.compactMap { $0 as? URL } ?? []).filter { $0.pathExtension == "docc" }
        return catalogs.filter { $0.lastPathComponent != "TransportHTTP.docc" }
    }

    /// The files of the articles, by name. The names are unique.
    private static let files: [String: URL] = {
        let files = folders.flatMap { (try? FileManager.default.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil)) ?? [] }
        let articles = files.filter { $0.pathExtension == "md" }.map { ($0.deletingPathExtension().lastPathComponent, $0) }
        return Dictionary(uniqueKeysWithValues: articles)
    }()

    static let articles = files.keys.sorted()

    static func file(of article: String) throws -> URL {
        try #require(files[article])
    }

    /// Returns the lines of the table below a heading of an article, without the two lines of the table's header.
    static func table(below heading: String, in article: URL) throws -> [String] {
        let text = try String(contentsOf: article, encoding: .utf8)
        let section = try #require(text.components(separatedBy: "## \(heading)\n").dropFirst().first)
        let lines = section.split(separator: "\n", omittingEmptySubsequences: false).drop { !$0.hasPrefix("|") }
        return lines.prefix { $0.hasPrefix("|") }.dropFirst(2).map(String.init)
    }

    /// Returns the Swift code blocks of an article, without blank lines and imports.
    static func code(in article: String) throws -> [[String]] {
        let text = try String(contentsOf: file(of: article), encoding: .utf8)
        return text.components(separatedBy: "```swift\n").dropFirst().map { block in
            lines(block.components(separatedBy: "```")[0], indentation: 0)
        }
    }

    /// Returns the code between the markers in an article's file in `Articles/`; no code if the article has no such file.
    static func compiledCode(of article: String) throws -> [[String]] {
        let file = tests.appending(path: "Articles/\(article).swift")
        guard FileManager.default.fileExists(atPath: file.path) else { return [] }
        let parts = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "// ARTICLE\n")
        return zip(parts, parts.dropFirst()).map { before, section in
            let indentation = before.reversed().prefix { $0 == " " }.count
            return lines(section.components(separatedBy: "// END\n")[0], indentation: indentation)
        }
    }

    /// Returns whether the sample of a transport contains a block of code, regardless of indentation. Ignores the other samples, because
    /// they can contain a short block, such as `await queue.shutdown()`, by chance.
    static func isInTransportSample(_ block: [String]) throws -> Bool {
        let samples = package.appending(path: "Samples/CustomTransport")
        let wanted = block.map(trimmed)
        return try FileManager.default.subpathsOfDirectory(atPath: samples.path).contains { name in
            guard name.hasSuffix(".swift"), !name.contains(".build/") else { return false }
            let text = try String(contentsOf: samples.appending(path: name), encoding: .utf8)
            let found = lines(text, indentation: 0).map(trimmed)
            return found.indices.contains { found[$0...].starts(with: wanted) }
        }
    }

    private static func trimmed(_ line: String) -> String { line.trimmingCharacters(in: .whitespaces) }

    private static func lines(_ text: String, indentation: Int) -> [String] {
        text.split(separator: "\n").filter { !$0.allSatisfy(\.isWhitespace) && !$0.hasPrefix("import ") }
            .map { String($0.prefix { $0 == " " }.count >= indentation ? $0.dropFirst(indentation) : $0) }
    }
}
