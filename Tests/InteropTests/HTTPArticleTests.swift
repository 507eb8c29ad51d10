import Foundation
import Testing

/// The article on plain HTTP shows code that compiles.
@Suite struct HTTPArticleTests {
    private let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    private var article: String {
        get throws {
            let folder = tests.appending(path: "../../Plugins/HTTP/TransportHTTP/TransportHTTP.docc")
            return try String(contentsOf: folder.appending(path: "PlainHTTP.md"), encoding: .utf8)
        }
    }

    private static func lines(_ text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    @Test func theCodeIsWhatCompiles() throws {
        let shown = try article.components(separatedBy: "```swift\n").dropFirst().map {
            Self.lines($0.components(separatedBy: "```")[0])
        }
        let source = try String(contentsOf: tests.appending(path: "HTTPArticle.swift"), encoding: .utf8)
        let compiled = source.components(separatedBy: "// ARTICLE\n").dropFirst().map {
            Self.lines($0.components(separatedBy: "// END\n")[0])
        }
        #expect(shown == compiled)
    }
}
