import Foundation
import Testing

/// The tests and names in the article "What it covers" exist, and so do the symbols in all articles.
@Suite struct CoverageArticleTests {
    private struct Row {
        var feature: String
        var counterpart: String
        var tests: String

        init(_ line: Substring) throws {
            let cells = line.dropFirst(2).dropLast(2).components(separatedBy: " | ")
            try #require(cells.count == 3, "\(line)")
            (feature, counterpart, tests) = (cells[0], cells[1], cells[2])
        }
    }

    private let article: URL
    private let rows: [Row]

    init() throws {
        article = try Catalog.file(of: "WhatItCovers")
        let lines = try String(contentsOf: article, encoding: .utf8).split(separator: "\n")
        // The header of a table precedes the line of dashes.
        let isRow = zip(lines, lines.dropFirst() + [""]).map { line, next in
            line.hasPrefix("|") && !line.hasPrefix("| ---") && !next.hasPrefix("| ---")
        }
        rows = try zip(lines, isRow).filter(\.1).map { try Row($0.0) }
    }

    /// Each row names its tests, or states that the feature is not covered or not tested. Each test is a function with `@Test` in the
    /// linked file.
    @Test func testsExist() throws {
        #expect(rows.count > 150)
        for row in rows {
            let links = row.tests.matches(of: #/\[(?<suite>\w+)\.(?<function>[^\]]+)\]\((?<path>[^)]+)\)/#)
            #expect(row.tests == (links.isEmpty ? "none" : links.map { String($0.output.0) }.joined(separator: ", ")))
            #expect(!links.isEmpty || row.counterpart.contains("**not "), "\(row.feature)")
            for link in links {
                let file = article.deletingLastPathComponent().appending(path: String(link.path)).standardized
                #expect(file.deletingPathExtension().lastPathComponent == link.suite)
                let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
                let parts = ["func \(link.function)(", "func `\(link.function)`("].map { text.components(separatedBy: $0) }
                let before = try #require(parts.first { $0.count == 2 }?.first, "\(link.path) has no function \(link.function).")
                // The attribute belongs to the declaration, which begins after the last empty line.
                #expect(before.components(separatedBy: "\n\n").last?.contains("@Test") == true, "\(link.function) is not a test.")
            }
        }
    }

    /// Each word of a name in the second column occurs in the sources.
    @Test func counterpartsExist() throws {
        for row in rows {
            for code in spans(of: row.counterpart, between: "`") { try expectWords(of: code) }
        }
    }

    /// Each word of a symbol link in an article occurs in the sources.
    @Test(arguments: Catalog.articles) func symbolsExist(article: String) throws {
        let text = try String(contentsOf: Catalog.file(of: article), encoding: .utf8)
        let prose = text.components(separatedBy: "```").enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element)
        for symbol in prose.flatMap({ spans(of: $0, between: "``") }) { try expectWords(of: symbol) }
    }

    /// Returns the texts between pairs of delimiters.
    private func spans(of text: String, between delimiter: String) -> [String] {
        text.components(separatedBy: delimiter).enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
    }

    private func expectWords(of code: String) throws {
        for word in code.utf8.split(whereSeparator: { !Self.isInWord($0) }) {
            let word = String(decoding: Array(word), as: UTF8.self)
            let isKnown = Self.words.contains(word)
            #expect(isKnown, "The sources do not contain \(word), a part of \(code).")
        }
    }

    /// All words in the sources of this package, and the names of their folders.
    private static let words: Set<String> = {
        var words: Set<String> = []
        for folder in ["Sources", "Plugins"].map({ Catalog.package.appending(path: $0) }) {
            for name in (try? FileManager.default.subpathsOfDirectory(atPath: folder.path)) ?? [] where name.hasSuffix(".swift") {
                // The module of a program has an underscore for each hyphen in the program's name.
                words.formUnion(name.replacing("-", with: "_").split(separator: "/").map(String.init))
                let bytes = [UInt8]((try? Data(contentsOf: folder.appending(path: name))) ?? Data())
                for word in bytes.split(whereSeparator: { !isInWord($0) }) { words.insert(String(decoding: word, as: UTF8.self)) }
            }
        }
        return words
    }()

    private static func isInWord(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: byte == UInt8(ascii: "_")
        }
    }
}
