import ArgumentParser
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Derives the remote names of a session's items.
struct RemoteNaming {
    /// The destination folder below the endpoint's folder; nil for the endpoint's folder itself.
    private let folder: RemotePath?

    /// - Parameter remote: The value of `--to`; nil for the endpoint's folder.
    /// - Throws: A `ValidationError` if the value is not a valid remote name.
    init(to remote: [UInt8]?) throws {
        guard var bytes = remote else {
            folder = nil
            return
        }
        if bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        do {
            folder = try RemotePath(bytes: bytes)
        } catch {
            throw ValidationError("The folder of --to is invalid: \(error.message)")
        }
    }

    /// Returns the remote name of a file or folder: its local name, in the destination folder. Reads the file system, and so blocks, only
    /// for a path that ends with `.` or `..`, or is `/`.
    ///
    /// - Returns: The remote name; nil for a path that ends with `.` or `..` and does not exist. The queue reports such a path, together with other
    ///   unreadable paths.
    /// - Throws: `TransferError` for the root folder, or for an invalid name.
    func destination(of source: FilePath) throws(TransferError) -> RemotePath? {
        var name = Self.lastComponent(source)
        if [[], Self.dot, Self.dot + Self.dot].contains(name) { name = Self.resolved(source).map(Self.lastComponent) ?? [] }
        if name.isEmpty, Self.resolved(source) == "/" {
            throw TransferError(
                .sourceLost, .unsafeName, "\(source) is the root folder, which has no name. Name the folders in it.")
        }
        guard !name.isEmpty else { return nil }
        return try RemotePath(bytes: folder.map { $0.bytes + Self.slash + name } ?? name)
    }

    private static let slash = [UInt8(ascii: "/")]
    private static let dot = [UInt8(ascii: ".")]

    /// Avoids splitting the path into components, which is much slower: a session can have 100,000 paths.
    private static func lastComponent(_ path: FilePath) -> [UInt8] {
        let bytes = path.bytes
        return bytes.lastIndex(of: slash[0]).map { [UInt8](bytes[($0 + 1)...]) } ?? bytes
    }

    private static func resolved(_ path: FilePath) -> FilePath? {
        guard let resolved = unsafe path.withPlatformString({ unsafe realpath($0, nil) }) else { return nil }
        defer { unsafe free(resolved) }
        return unsafe FilePath(platformString: resolved)
    }
}
