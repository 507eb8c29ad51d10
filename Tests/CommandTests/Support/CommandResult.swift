import Foundation
import Testing

struct CommandResult: Sendable, CustomTestStringConvertible {
    var status: Int32
    /// Whether a signal ended the process. If so, the status is the signal's number.
    var wasKilled: Bool
    var output: String
    var diagnostics: String

    var lines: [String] { output.split(separator: "\n").map(String.init) }

    func objects() throws -> [[String: Any]] {
        try lines.map(Self.object)
    }

    static func object(_ line: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line) is not a JSON object")
    }

    var testDescription: String { "status \(status)\n\(output)\n\(diagnostics)" }
}
