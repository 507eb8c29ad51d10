import Foundation
import Testing
import TransferCore
import TransportHTTP

/// The code of the article on plain HTTP compiles, and its tables list all settings.
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

    @Test func codeCompiles() throws {
        let shown = try article.components(separatedBy: "```swift\n").dropFirst().map {
            Self.lines($0.components(separatedBy: "```")[0])
        }
        let source = try String(contentsOf: folder.appending(path: "HTTPArticle.swift"), encoding: .utf8)
        let compiled = source.components(separatedBy: "// ARTICLE\n").dropFirst().map {
            Self.lines($0.components(separatedBy: "// END\n")[0])
        }
        #expect(shown == compiled)
    }

    /// The names in the first column of the table below a heading.
    private func names(below heading: String) throws -> Set<String> {
        let section = try #require(try article.components(separatedBy: "## \(heading)\n").last).components(separatedBy: "\n## ")[0]
        let cells = Self.lines(section).filter { $0.hasPrefix("| `") }.map { $0.split(separator: "|")[0] }
        return Set(cells.flatMap { $0.split(separator: ",") }.map { $0.trimmingCharacters(in: CharacterSet(charactersIn: " `")) })
    }

    /// The valid names, from the message about an unknown one.
    private func known(_ error: TransferError?) throws -> Set<String> {
        let message = try #require(error?.message)
        let list = try #require(
            message.components(separatedBy: "valid settings are ").last?.components(separatedBy: "for sessions are ").last)
        return Set(list.dropLast().components(separatedBy: ", "))
    }

    @Test func listsAllAccountSettings() throws {
        let error = #expect(throws: TransferError.self) { try HTTPTransport.validate(.http("https+put://host/", settings: ["?": ""])) }
        #expect(try names(below: "Settings of accounts") == known(error))
    }

    @Test func listsAllSessionSettings() throws {
        let error = #expect(throws: TransferError.self) {
            try HTTPTransport.validate(AttemptOptions(settings: ["?": ""]), for: .upload, at: .http("https+put://host/"))
        }
        #expect(try names(below: "Settings of sessions") == known(error))
    }
}
