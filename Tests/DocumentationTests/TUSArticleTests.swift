import Foundation
import Testing
import TransferCore
import TransportTUS

/// The code of the article on tus accounts compiles, and its commands and ranges are valid.
@Suite struct TUSArticleTests {
    private let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    private var article: String {
        get throws {
            let folder = tests.appending(path: "../../Plugins/TUS/TransportTUS/TransportTUS.docc")
            return try String(contentsOf: folder.appending(path: "TUSAccounts.md"), encoding: .utf8)
        }
    }

    private static func lines(_ text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    private static func blocks(_ language: String, in text: String) -> [String] {
        text.components(separatedBy: "```\(language)\n").dropFirst().map { $0.components(separatedBy: "```")[0] }
    }

    @Test func codeCompiles() throws {
        let source = try String(contentsOf: tests.appending(path: "Articles/TUSAccounts.swift"), encoding: .utf8)
        let compiled = source.components(separatedBy: "// ARTICLE\n").dropFirst().map {
            Self.lines($0.components(separatedBy: "// END\n")[0])
        }
        #expect(Self.blocks("swift", in: try article).map(Self.lines) == compiled)
    }

    /// The settings in the commands are valid.
    @Test func commandsAreValid() throws {
        let blocks = Self.blocks("sh", in: try article)
        #expect(blocks.count == 2)
        for block in blocks {
            let pairs = block.components(separatedBy: "--setting ").dropFirst().map {
                $0.prefix { !$0.isWhitespace }.split(separator: "=", maxSplits: 1).map(String.init)
            }
            #expect(!pairs.isEmpty && pairs.allSatisfy { $0.count == 2 })
            try TUSTransport.validate(
                Endpoint(
                    transport: .tus, address: "https://host/", settings: Dictionary(uniqueKeysWithValues: pairs.map { ($0[0], $0[1]) })))
        }
    }

    /// The transport accepts the minimum values in the article, and rejects smaller values.
    @Test func minimumValuesAreCorrect() throws {
        for (name, least) in [("chunkMultiple", 1), ("chunkSize", 1), ("parallelThreshold", 1), ("singleRequestSize", 0)] {
            try TUSTransport.validate(Endpoint(transport: .tus, address: "https://host/", settings: [name: "\(least)"]))
            #expect(throws: TransferError.self) {
                try TUSTransport.validate(Endpoint(transport: .tus, address: "https://host/", settings: [name: "\(least - 1)"]))
            }
        }
    }
}
