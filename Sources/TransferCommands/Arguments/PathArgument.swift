import ArgumentParser
import SystemPackage
import TransferControl
import TransferCore

/// A local path among the arguments, byte for byte as it was given.
struct PathArgument: ExpressibleByArgument {
    let path: FilePath

    init?(argument: String) {
        path = FilePath(bytes: ProcessArguments.bytes(of: argument))
    }

    static var defaultCompletionKind: CompletionKind { .file() }
}

extension FilePath {
    /// The path from the root: for what another process will read, in another working directory.
    var absolute: FilePath {
        isAbsolute ? self : FilePath.workingFolder.pushing(self)
    }
}
