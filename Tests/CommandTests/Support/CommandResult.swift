import Foundation
import Testing

/// The output and exit status of a command.
struct CommandResult: Sendable, CustomTestStringConvertible {
    var status: Int32
    /// Whether a signal ended the process. If so, the status is the signal's number.
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
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line) is not a JSON object")
    }

    var testDescription: String { "status \(status)\n\(output)\n\(diagnostics)" }
}
