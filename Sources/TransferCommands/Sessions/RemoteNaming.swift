import ArgumentParser
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What the files of a session are called at the endpoint.
struct RemoteNaming {
    /// Below the endpoint's own folder; nil for that folder itself.
    private let folder: RemotePath?

    /// - Parameter remote: What was given as `--to`, if anything.
    /// - Throws: A `ValidationError` for a folder outside of the endpoint's.
    init(to remote: [UInt8]?) throws {
        guard var bytes = remote else {
            folder = nil
            return
        }
        if bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
        do {
            folder = try RemotePath(bytes: bytes)
        } catch {
            throw ValidationError("--to can't be used: \(error.message)")
        }
    }

    /// The remote name of a file or folder; nil for a path that is not there, which the queue refuses with all others that can't be sent. Blocks for
    /// a path that ends in `.` or `..`.
    func destination(of source: FilePath) throws(TransferError) -> RemotePath? {
        var name = Self.lastComponent(source)
        if [[], Self.dot, Self.dot + Self.dot].contains(name) { name = Self.resolved(source).map(Self.lastComponent) ?? [] }
        if name.isEmpty, Self.resolved(source) == "/" {
            throw TransferError(
                .sourceLost, .unsafeName, "\(source) is the root of all folders, which has no name to be sent under; name folders in it.")
        }
        guard !name.isEmpty else { return nil }
        return try RemotePath(bytes: folder.map { $0.bytes + Self.slash + name } ?? name)
    }

    private static let slash = [UInt8(ascii: "/")]
    private static let dot = [UInt8(ascii: ".")]

    /// Of a path's bytes: a batch may have a hundred thousand, and taking each apart into all its components would cost more than all else.
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
