import Foundation
import SystemPackage
import TransferCore

/// The files and folders that a person names.
enum LocalPaths {
    /// Stands for paths from standard input.
    static let standardInput: FilePath = "-"

    /// Puts the paths from standard input in the place of `-`.
    static func read(_ given: [PathArgument]) async throws(CommandFailure) -> [PathArgument] {
        guard given.count(where: { $0.path == standardInput }) <= 1 else {
            throw CommandFailure(.usage, "Standard input can be read once only; give one - or --stdin.")
        }
        guard let position = given.firstIndex(where: { $0.path == standardInput }) else { return given }
        let read = split(try await StandardInput.read("paths"))
        let paths = given[..<position] + read + given[(position + 1)...]
        guard !paths.isEmpty else { throw CommandFailure(.usage, "There are no paths on standard input; nothing was added.") }
        return Array(paths)
    }

    /// Splits at each NUL if there is any, as only then can names hold line breaks; else at line breaks.
    static func split(_ bytes: [UInt8]) -> [PathArgument] {
        let separator: UInt8 = bytes.contains(0) ? 0 : UInt8(ascii: "\n")
        return bytes.split(separator: separator).map { PathArgument(bytes: $0) }
    }
}
