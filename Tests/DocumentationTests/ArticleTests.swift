import Foundation
import Testing

/// All code in the articles comes from `Articles/` or from the samples, so it compiles.
@Suite struct ArticleTests {
    @Test(arguments: Catalog.articles) func codeCompiles(article: String) throws {
        let shown = try Catalog.code(in: article).filter { try !Catalog.isInSample($0) }
        let compiled = try Catalog.compiledCode(of: article)
        #expect(shown.count == compiled.count)
        for (shown, compiled) in zip(shown, compiled) { #expect(shown == compiled) }
    }

    @Test func articlesAreFound() {
        #expect(Catalog.articles.contains("GettingStarted"))
    }
}

/// The articles of the documentation, and their code.
enum Catalog {
    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    private static let package = tests.deletingLastPathComponent().deletingLastPathComponent()
    private static let folder = package.appending(path: "Sources/TransferKit/TransferKit.docc")

    static let articles: [String] = {
        let files = (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? []
        return files.filter { $0.pathExtension == "md" }.map { $0.deletingPathExtension().lastPathComponent }.sorted()
    }()

    /// The Swift code blocks of an article, without blank lines and imports.
    static func code(in article: String) throws -> [[String]] {
        let text = try String(contentsOf: folder.appending(path: "\(article).md"), encoding: .utf8)
        return text.components(separatedBy: "```swift\n").dropFirst().map { block in
            lines(block.components(separatedBy: "```")[0], indentation: 0)
        }
    }

    /// The code sections of an article's file in `Articles/`; empty if the article has no such file.
    static func compiledCode(of article: String) throws -> [[String]] {
        let file = tests.appending(path: "Articles/\(article).swift")
        guard FileManager.default.fileExists(atPath: file.path) else { return [] }
        let parts = try String(contentsOf: file, encoding: .utf8).components(separatedBy: "// ARTICLE\n")
        return zip(parts, parts.dropFirst()).map { before, section in
            let indentation = before.reversed().prefix { $0 == " " }.count
            return lines(section.components(separatedBy: "// END\n")[0], indentation: indentation)
        }
    }

    /// Whether a sample contains a block of code, regardless of indentation.
    static func isInSample(_ block: [String]) throws -> Bool {
        let samples = package.appending(path: "Samples")
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
