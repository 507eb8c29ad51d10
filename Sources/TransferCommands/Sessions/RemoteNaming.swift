import ArgumentParser
import SystemPackage
import TransferCore

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

    /// The remote name of a file; nil for its own.
    func destination(of source: FilePath) throws -> RemotePath? {
        // A path without a last component names no file, which the queue refuses with all others.
        guard let folder, let name = source.lastComponent else { return nil }
        return try RemotePath(bytes: folder.bytes + [UInt8(ascii: "/")] + FilePath(root: nil, components: name).bytes)
    }
}
