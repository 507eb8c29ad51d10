import ArgumentParser
package import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A path argument, which need not be UTF-8.
struct PathArgument: ExpressibleByArgument {
    let path: FilePath
    let endsInSlash: Bool

    /// Whether the path of a download stands for the endpoint's folder itself.
    var isEndpointFolder: Bool { path == "/" || path == "." }

    var isFolder: Bool { endsInSlash || isEndpointFolder }

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
    /// The absolute path, for processes with another working directory.
    package var absolute: FilePath {
        guard isAbsolute else { return FilePath.workingFolder.pushing(self) }
        // In the process that owns the queue, such a path would name another file. Most paths do not begin with `/proc/` or `/dev/`.
        guard unsafe withPlatformString({ unsafe strncmp($0, "/proc/", 6) == 0 || strncmp($0, "/dev/", 5) == 0 }),
            Self.foldersOfThisProcess.contains(where: { starts(with: $0) }),
            let path = unsafe withPlatformString({ unsafe realpath($0, nil) })
        else { return self }
        defer { unsafe free(path) }
        return unsafe FilePath(platformString: path)
    }

    /// The folders and links whose content differs between processes (proc(5)).
    private static let foldersOfThisProcess: [FilePath] = [
        "/proc/self", "/proc/thread-self", "/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr",
    ]

    /// Whether the path is a folder, or a symbolic link to one. Blocks.
    var isFolder: Bool { (try? stat())?.type == .directory }

    /// The size of the file in bytes; nil if the path is not a regular file. Blocks.
    var size: Int64? { (try? stat()).flatMap { $0.type == .regular ? $0.size : nil } }
}
