import ArgumentParser
import SystemPackage
import TransferCore

/// What the files of a session are called at the endpoint.
struct RemoteNaming {
    private enum Rule {
        case ownName
        case name(RemotePath)
        case folder(RemotePath)
    }

    private let rule: Rule

    /// - Parameters:
    ///   - remote: What was given as `--to`, if anything.
    ///   - isSingle: Whether there is exactly one file, so that `remote` can be its name.
    /// - Throws: A `ValidationError` for a name that would leave the endpoint's folder.
    init(to remote: [UInt8]?, isSingle: Bool) throws {
        guard let remote else {
            rule = .ownName
            return
        }
        var bytes = remote
        let namesFolder = bytes.last == UInt8(ascii: "/")
        if namesFolder, bytes.count > 1 { bytes.removeLast() }
        let path: RemotePath
        do {
            path = try RemotePath(bytes: bytes)
        } catch {
            throw ValidationError("--to can't be used: \(error.message)")
        }
        rule = namesFolder || !isSingle ? .folder(path) : .name(path)
    }

    /// The remote name of a file; nil for its own.
    func destination(of source: FilePath) throws -> RemotePath? {
        switch rule {
        case .ownName: nil
        case .name(let path): path
        case .folder(let folder):
            // A path without a last component names no file, which the queue refuses with all others.
            try source.lastComponent.map { component in
                try RemotePath(bytes: folder.bytes + [UInt8(ascii: "/")] + FilePath(root: nil, components: component).bytes)
            }
        }
    }
}
