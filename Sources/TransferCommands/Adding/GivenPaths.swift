import Foundation
import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Reads the paths given to `upload`, `download` and `add`.
enum GivenPaths {
    static let standardInput: FilePath = "-"

    /// Replaces `-` with the paths from standard input.
    ///
    /// - Throws: A `CommandFailure` if `-` is given twice, or standard input can't be read, or there are no paths at all.
    static func read(_ given: [PathArgument]) async throws(CommandFailure) -> [PathArgument] {
        guard given.count(where: { $0.path == standardInput }) <= 1 else {
            throw CommandFailure(.usage, "Standard input can be read only once. Use either one - or --stdin.")
        }
        guard let position = given.firstIndex(where: { $0.path == standardInput }) else { return given }
        let inputPaths = split(try await StandardInput.read("paths"))
        let paths = given[..<position] + inputPaths + given[(position + 1)...]
        guard !paths.isEmpty else { throw CommandFailure(.usage, "Standard input contains no paths. Nothing was added.") }
        return Array(paths)
    }

    /// Creates a folder if it is missing and its parent exists. Ignores errors, because the queue checks the folder. Blocks.
    static func createFolder(_ path: FilePath) {
        // mkdir(2). The umask restricts the permissions.
        let isCreated = unsafe path.withPlatformString { unsafe mkdir($0, 0o777) } == 0
        // Without the sync, a power failure could remove the folder with its completed downloads. An existing folder needs the sync too, because the
        // process that created the folder may have ended before it synced the parent folder.
        if isCreated || errno == EEXIST { StorageFolder.sync(path.removingLastComponent()) }
    }

    /// If the input contains NUL bytes, splits only at these bytes, so that names can contain line breaks.
    static func split(_ bytes: [UInt8]) -> [PathArgument] {
        let separator: UInt8 = bytes.contains(0) ? 0 : UInt8(ascii: "\n")
        return bytes.split(separator: separator).map { PathArgument(bytes: $0) }
    }
}
