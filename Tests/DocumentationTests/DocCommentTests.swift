import Foundation
import Testing

/// All code in doc comments comes from `Comments/` or from the sample of a transport, so it compiles.
@Suite struct DocCommentTests {
    @Test func codeCompiles() throws {
        let (shown, compiled) = (try Self.shownCode(), try Self.compiledCode())
        #expect(shown.count > 15)
        #expect(shown.keys.sorted() == compiled.keys.sorted())
        for (file, blocks) in shown { #expect(blocks == compiled[file], "\(file)") }
    }

    /// Returns the Swift code blocks in the doc comments of each source file, in order, without blank lines. Omits code from the
    /// sample of a transport, and files without other code blocks.
    private static func shownCode() throws -> [String: [[String]]] {
        var found: [String: [[String]]] = [:]
        for folder in ["Sources", "Plugins"].map({ Catalog.package.appending(path: $0) }) {
            for name in try FileManager.default.subpathsOfDirectory(atPath: folder.path) where name.hasSuffix(".swift") {
                let file = folder.appending(path: name)
                let text = try String(contentsOf: file, encoding: .utf8)
                guard text.contains("/// ```") else { continue }
                var block: [String]?
                for line in text.split(separator: "\n").map({ $0.drop { $0 == " " } }) {
                    if line == "/// ```swift" {
                        block = []
                    } else if line == "/// ```", let lines = block {
                        if try !Catalog.isInTransportSample(lines) { found[file.lastPathComponent, default: []].append(lines) }
                        block = nil
                    } else if line != "///" {
                        block?.append(String(line.dropFirst("/// ".count)))
                    }
                }
            }
        }
        return found
    }

    /// Returns the code between the markers in `Comments/`, by the names of the source files whose doc comments contain it.
    private static func compiledCode() throws -> [String: [[String]]] {
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appending(path: "Comments")
        var found: [String: [[String]]] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() {
            var section: (file: String, indentation: Int, lines: [String])?
            for line in try String(contentsOf: folder.appending(path: name), encoding: .utf8).split(separator: "\n") {
                let (indentation, text) = (line.prefix { $0 == " " }.count, line.drop { $0 == " " })
                if text.hasPrefix("// COMMENT ") {
                    section = (String(text.dropFirst("// COMMENT ".count)), indentation, [])
                } else if text == "// END", let ended = section {
                    found[ended.file, default: []].append(ended.lines)
                    section = nil
                } else if !text.isEmpty, let outer = section?.indentation {
                    section?.lines.append(String(line.dropFirst(min(indentation, outer))))
                }
            }
        }
        return found
    }
}
