import Foundation
import Testing

/// What a command printed, and how it ended.
struct CommandResult: Sendable, CustomTestStringConvertible {
    var status: Int32
    /// Whether a signal ended it; the status is its number then.
    var wasKilled: Bool
    var output: String
    var diagnostics: String

    /// The lines of standard output.
    var lines: [String] { output.split(separator: "\n").map(String.init) }

    /// The lines of standard output as JSON objects.
    func objects() throws -> [[String: Any]] {
        try lines.map(Self.object)
    }

    static func object(_ line: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line) is no JSON object")
    }

    var testDescription: String { "status \(status)\n\(output)\n\(diagnostics)" }
}
