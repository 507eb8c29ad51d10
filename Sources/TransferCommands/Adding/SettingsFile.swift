import SystemPackage
import TransferKit

/// Reads session settings from a file, one `NAME=VALUE` per line. A file keeps the settings out of the process list.
enum SettingsFile {
    static let standardInput: FilePath = "-"

    /// The maximum size of the file in bytes, enough for the signed URLs of ten thousand files.
    private static let limit = 1 << 24

    /// Reads the settings from a file that only its owner can access, or from standard input. Ignores blank lines and lines that begin with
    /// `#`.
    ///
    /// - Throws: An error if the input can't be read, a line is not `NAME=VALUE`, or a name is repeated. The message does not contain a
    ///   value.
    static func read(_ path: FilePath) async throws -> [String: String] {
        if path == standardInput { return try settings(in: try await StandardInput.read("settings"), of: "standard input") }
        let bytes = try await BlockingIO.run { try PrivateFile.read(path, as: "settings file", limit: limit) }
        return try settings(in: bytes, of: "the settings file \(path)")
    }

    private static func settings(in bytes: [UInt8], of file: String) throws(CommandFailure) -> [String: String] {
        var settings: [String: String] = [:]
        for (index, line) in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).enumerated() {
            let location = "Line \(index + 1) of \(file)"
            let line = line.last == UInt8(ascii: "\r") ? line.dropLast() : line
            guard let first = line.first(where: { !blanks.contains($0) }), first != UInt8(ascii: "#") else { continue }
            guard let text = String(validating: line, as: UTF8.self) else { throw CommandFailure(.usage, "\(location) is not UTF-8.") }
            guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw CommandFailure(.usage, "\(location) is not NAME=VALUE.")
            }
            let name = String(text[..<equals])
            guard settings.updateValue(String(text[text.index(after: equals)...]), forKey: name) == nil else {
                throw CommandFailure(.usage, "\(location) sets \(name.debugDescription) again. Remove one of the lines.")
            }
        }
        return settings
    }

    private static let blanks = [UInt8(ascii: " "), UInt8(ascii: "\t")]
}
