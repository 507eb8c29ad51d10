import ArgumentParser
import SystemPackage
import TransferControl
import TransferCore

/// A local path among the arguments, byte for byte as it was given.
struct PathArgument: ExpressibleByArgument {
    let path: FilePath
    /// Whether it ends in a slash, and so means a folder.
    let endsInSlash: Bool

    init?(argument: String) {
        self.init(bytes: ProcessArguments.bytes(of: argument))
    }

    init(bytes: some Collection<UInt8>) {
        path = FilePath(bytes: bytes)
        endsInSlash = Array(bytes).last == UInt8(ascii: "/")
    }

    static var defaultCompletionKind: CompletionKind { .file() }
}

extension FilePath {
    /// The path from the root: for what another process will read, in another working directory.
    var absolute: FilePath {
        isAbsolute ? self : FilePath.workingFolder.pushing(self)
    }

    /// Whether there is a folder, also one behind symbolic links. Blocks.
    var isFolder: Bool { (try? stat())?.type == .directory }

    /// How many bytes the file has that is there; nil if there is none. Blocks.
    var size: Int64? { (try? stat()).flatMap { $0.type == .regular ? $0.size : nil } }
}
