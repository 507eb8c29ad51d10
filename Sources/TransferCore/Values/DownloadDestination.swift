public import SystemPackage

/// The local destination of a downloaded file.
///
/// The transport writes bytes to ``partPath`` and syncs them before a checkpoint covers them. It syncs the complete file, gives it its final name
/// atomically, and then syncs its folder.
///
/// The part file keeps its own name, as a second link to the same file, until the queue has stored the completion of the download and removes that
/// name. So an attempt after a kill in between finds the file complete. On a file system without links, the part file is renamed, after a note beside it
/// names the target. `FileWriter` of the product TransportSupport does all of this.
public struct DownloadDestination: Hashable, Sendable {
    /// The folder for the download. Nothing may be written outside of it, not even through a symbolic link below it.
    public let root: FilePath

    /// The file's name below ``root``: relative, without `..`.
    public let name: FilePath

    /// The name of the part file below ``root``: in the final folder, and with the transfer's ID in it.
    public let partName: FilePath

    /// The policy for an existing file.
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

    /// The temporary name of a part file that replaces a file, or the name of the note for a part file that is renamed.
    package static func placingName(of partName: FilePath) -> FilePath {
        FilePath(bytes: partName.bytes + Array(".new".utf8))
    }
}

/// The policy for an existing file at the destination.
public enum OverwritePolicy: String, Hashable, Sendable, Codable, CaseIterable {
    /// The transfer fails with an error that names the file.
    case never
    /// The existing file is replaced.
    case always
    /// The existing file is replaced if size or modification time differ. Otherwise it stays, and counts as transferred.
    case different
    /// The existing file is replaced if the source is newer. Otherwise it stays, and counts as transferred.
    case newer
    /// The existing file stays, whatever it is, and counts as transferred.
    case skip
    /// The existing file stays, and the new one gets a number: `reel (1).mov` for `reel.mov`.
    case rename
}
