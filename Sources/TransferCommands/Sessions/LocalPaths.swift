import Foundation
import SystemPackage
import TransferCore

/// The local files and folders that a person names.
enum LocalPaths {
    /// Stands for paths from standard input.
    static let standardInput: FilePath = "-"

    /// Puts the paths from standard input in the place of `-`.
    static func read(_ given: [FilePath]) async throws(CommandFailure) -> [FilePath] {
        guard given.count(where: { $0 == standardInput }) <= 1 else {
            throw CommandFailure(.usage, "Standard input can be read once only; give one - or --stdin.")
        }
        guard let position = given.firstIndex(of: standardInput) else { return given }
        let read = try await BlockingWork.run { () throws(CommandFailure) in try readStandardInput() }
        let paths = given[..<position] + read + given[(position + 1)...]
        guard !paths.isEmpty else { throw CommandFailure(.usage, "There are no paths on standard input; nothing was added.") }
        return Array(paths)
    }

    private static func readStandardInput() throws(CommandFailure) -> [FilePath] {
        do {
            var bytes: [UInt8] = []
            var part = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = try unsafe part.withUnsafeMutableBytes { unsafe try FileDescriptor.standardInput.read(into: $0) }
                if count == 0 { return split(bytes) }
                bytes += part.prefix(count)
            }
        } catch Errno.badFileDescriptor {
            throw CommandFailure(.usage, "There are no paths to read, as standard input is closed; nothing was added.")
        } catch {
            throw CommandFailure(.usage, "Standard input can't be read: \(error). Nothing was added.")
        }
    }

    /// Splits at each NUL if there is any, as only then can names hold line breaks; else at line breaks.
    static func split(_ bytes: [UInt8]) -> [FilePath] {
        let separator: UInt8 = bytes.contains(0) ? 0 : UInt8(ascii: "\n")
        return bytes.split(separator: separator).map { FilePath(bytes: $0) }
    }
}
