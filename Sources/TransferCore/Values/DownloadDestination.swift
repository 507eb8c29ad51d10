public import SystemPackage

/// The local destination of a downloaded file.
///
/// The transport writes bytes to ``partPath`` and syncs them before a checkpoint covers them. At the end, it syncs the complete file, atomically
/// gives the file its final name, and then syncs the folder.
///
/// The name of the part file stays as a second hard link to the complete file. The queue removes this link once it has stored the
/// completion of the download. If the process is killed before this, the next attempt finds the complete file. On a file system without
/// hard links, the transport first records the final name in a small file next to the part file, and then renames the part file.
/// `FileWriter` of the product TransportSupport implements all of this.
public struct DownloadDestination: Hashable, Sendable {
    /// The folder for the download. Nothing may be written outside of this folder, not even through a symbolic link below it.
    public let root: FilePath

    /// The file's name below ``root``: relative, without `..`.
    public let name: FilePath

    /// The name of the part file below ``root``, in the folder of the final file. Usually contains the ``FileAttempt/partID``.
    public let partName: FilePath

    /// The policy for an existing file with the final name.
    public let overwrite: OverwritePolicy

    /// Creates a destination. For the queue and tests of transports.
    public init(root: FilePath, name: FilePath, partName: FilePath, overwrite: OverwritePolicy = .never) {
        self.root = root
        self.name = name
        self.partName = partName
        self.overwrite = overwrite
    }

    /// The final path.
    public var path: FilePath { root.pushing(name) }

    /// The path of the part file.
    public var partPath: FilePath { root.pushing(partName) }

    /// The name of a temporary hard link to the part file; a rename of this link replaces an existing file. On a file system without hard links: the
    /// name of the file that records the final name.
    package static func temporaryName(of partName: FilePath) -> FilePath {
        FilePath(bytes: partName.bytes + Array(".new".utf8))
    }
}

/// The policy for an existing file at the destination.
public enum OverwritePolicy: String, Hashable, Sendable, Codable, CaseIterable {
    /// The transfer fails with an error that names the file.
    case never
    /// The existing file is replaced.
    case always
    /// The existing file is replaced if its size or modification time differs. Otherwise the existing file stays, and the transfer counts as
    /// completed.
    case different
    /// The existing file is replaced if the source is newer. Otherwise the existing file stays, and the transfer counts as completed.
    case newer
    /// The existing file always stays, and the transfer counts as completed.
    case skip
    /// The existing file stays, and the name of the new file gets a number: `reel (1).mov` for `reel.mov`.
    case rename
}
