import Foundation
import Testing
import TransferCommands

/// The commands in the README, the articles and the samples' texts. The article about fleets is excluded, because its commands belong to another
/// program.
@Suite struct ArticleCommandTests {
    @Test func commandsAreValid() async throws {
        var count = 0
        for (file, words) in try Self.commands() {
            count += 1
            let error = await CommandLineProgram.usageError(in: words)
            // The files that the examples name do not exist.
            #expect(error == nil || error?.hasPrefix("Cannot read the file") == true, "\(file): \(words.joined(separator: " "))")
        }
        #expect(count > 50)
    }

    /// Returns the words of each `transferq` command in a code block, with the name of the file that contains the block.
    private static func commands() throws -> [(file: String, words: [String])] {
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let files = try ["README.md", "Sources", "Plugins", "Samples"].flatMap { name in
            let location = root.appending(path: name)
            let found = FileManager.default.enumerator(at: location, includingPropertiesForKeys: nil, options: .skipsHiddenFiles)
            let urls = [location] + (found?.compactMap { $0 as? URL } ?? [])
            return try urls.filter { $0.pathExtension == "md" && $0.lastPathComponent != "RunningAFleet.md" }.map { url in
                (url.lastPathComponent, try String(contentsOf: url, encoding: .utf8))
            }
        }
        return files.flatMap { file, text in
            // Every second element is a code block. A backslash continues a line.
            let blocks = text.components(separatedBy: "```").enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
            let lines = blocks.joined(separator: "\n").replacing("\\\n", with: "").split(separator: "\n").map { $0.drop { $0 == " " } }
            return lines.flatMap { line in
                line.ranges(of: #/(^|\$ |\| |xargs -r |\$\()transferq( |$)/#).map { range in
                    let words = words(of: line[range.upperBound...])
                    // xargs adds the IDs of sessions.
                    return (file, line[..<range.upperBound].hasSuffix("xargs -r transferq ") ? words + ["9cee718f"] : words)
                }
            }
        }
    }

    /// Splits a command as a shell would, up to an operator or a comment. Replaces each variable with 1.
    private static func words(of command: Substring) -> [String] {
        var (words, word, quote) = ([String](), String?.none, Character?.none)
        for character in command {
            if character == quote {
                quote = nil
            } else if quote != nil {
                word?.append(character)
            } else if "|;<>)&".contains(character) || (character == "#" && word == nil) {
                break
            } else if character == " " {
                if let word { words.append(word) }
                word = nil
            } else {
                word = word ?? ""
                if "'\"".contains(character) { quote = character } else { word?.append(character) }
            }
        }
        return (words + (word.map { [$0] } ?? [])).map { $0.replacing(#/\$[A-Za-z]+/#, with: "1") }
    }
}
