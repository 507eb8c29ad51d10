import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// An entry of a local folder, with its type and size.
struct FoundEntry {
    enum Kind {
        case file(size: Int64)
        case folder(isLink: Bool)
        /// An entry that the session omits, and that does not count as failed.
        case skipped(TransferError)
        case failed(TransferError)
    }

    let name: [UInt8]
    let kind: Kind

    /// Inspects an entry. Skips a link that the policy excludes.
    init(_ name: [UInt8], in folder: DirectoryStream, at path: [UInt8], _ policy: SymbolicLinkPolicy) {
        self.name = name
        var shown: FilePath { FilePath(bytes: path + [UInt8(ascii: "/")] + name) }
        do throws(Errno) {
            var status = try folder.status(of: name, followsLink: false)
            let isLink = status.st_mode & S_IFMT == S_IFLNK
            if isLink {
                guard policy != .skip else {
                    kind = .skipped(Self.skippedLink(shown))
                    return
                }
                status = try folder.status(of: name, followsLink: true)
            }
            switch status.st_mode & S_IFMT {
            case S_IFREG:
                let size = Int64(status.st_size)
                kind = size <= FileSize.maximum ? .file(size: size) : .failed(FileSize.tooLarge(shown))
            case S_IFDIR:
                guard !isLink || policy == .follow else {
                    kind = .skipped(Self.skippedLink(shown))
                    return
                }
                kind = .folder(isLink: isLink)
            default: kind = .skipped(LocalFile.notSendable(shown, mode: status.st_mode))
            }
        } catch {
            kind = .failed(LocalFile.unavailable(shown, error))
        }
    }

    private static func skippedLink(_ path: FilePath) -> TransferError {
        TransferError(
            .unsupported, .notARegularFile,
            "\(path) is a symbolic link that the session does not follow. To upload its target, use another policy for symbolic links."
        )
    }
}
