import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The local files that a person names.
enum LocalPaths {
    /// Stands for paths from standard input.
    static let standardInput: FilePath = "-"

    /// Puts the paths from standard input in the place of `-`, and refuses folders.
    static func read(_ given: [FilePath]) async throws(CommandFailure) -> [FilePath] {
        guard given.count(where: { $0 == standardInput }) <= 1 else {
            throw CommandFailure(.usage, "Standard input can be read once only; give one -.")
        }
        return try await BlockingWork.run { () throws(CommandFailure) in
            var paths: [FilePath] = []
            for path in given {
                if path == standardInput {
                    paths += try readStandardInput()
                } else {
                    paths.append(path)
                }
            }
            guard !paths.isEmpty else { throw CommandFailure(.usage, "There are no paths on standard input; nothing was added.") }
            try refuseFolders(paths)
            return paths
        }
    }

    private static func readStandardInput() throws(CommandFailure) -> [FilePath] {
        do {
            return split([UInt8](try FileHandle.standardInput.readToEnd() ?? Data()))
        } catch {
            throw CommandFailure(.usage, "Standard input can't be read: \(error).")
        }
    }

    /// Splits at each NUL if there is any, as only then can names hold line breaks; else at line breaks.
    static func split(_ bytes: [UInt8]) -> [FilePath] {
        let separator: UInt8 = bytes.contains(0) ? 0 : UInt8(ascii: "\n")
        return bytes.split(separator: separator).map { FilePath(bytes: $0) }
    }

    /// Where there are folders, names everything that is wrong at once; otherwise that is left to the queue.
    private static func refuseFolders(_ paths: [FilePath]) throws(CommandFailure) {
        guard paths.contains(where: isFolder) else { return }
        var problems: [String] = []
        for path in paths {
            if isFolder(path) {
                problems.append("\(path) is a folder; this version sends files only, so name the files in it.")
                continue
            }
            do {
                _ = try SourceIdentity(ofFileAt: path)
            } catch {
                problems.append(error.message)
            }
        }
        throw CommandFailure(.usage, problems.joined(separator: "\n"))
    }

    private static func isFolder(_ path: FilePath) -> Bool {
        var status = stat()
        return unsafe path.withPlatformString { unsafe stat($0, &status) } == 0 && status.st_mode & S_IFMT == S_IFDIR
    }
}
