import Foundation
import Testing

/// Verifies that the code in the article on plain HTTP matches HTTPArticle.swift, which is compiled with the tests.
@Suite struct HTTPArticleTests {
    private let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()

    private var article: String {
        get throws {
            let article = folder.appending(path: "../../../Plugins/HTTP/TransportHTTP/TransportHTTP.docc/PlainHTTP.md")
            return try String(contentsOf: article, encoding: .utf8)
        }
    }

    private static func lines(_ text: String) -> [String] {
        text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    @Test func articleEqualsCompiledCode() throws {
        let shown = try article.components(separatedBy: "```swift\n").dropFirst().map {
            Self.lines($0.components(separatedBy: "```")[0])
        }
        let source = try String(contentsOf: folder.appending(path: "HTTPArticle.swift"), encoding: .utf8)
        let compiled = source.components(separatedBy: "// ARTICLE\n").dropFirst().map {
            Self.lines($0.components(separatedBy: "// END\n")[0])
        }
        #expect(shown == compiled)
    }
}
