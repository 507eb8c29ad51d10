public import SystemPackage

/// Where a downloaded file goes on this machine.
///
/// Bytes are written to ``partPath`` and synced before a checkpoint vouches for them; the complete file is synced, takes its name by one
/// rename, and then its folder is synced.
public struct DownloadDestination: Hashable, Sendable {
    /// The folder that nothing may be written outside of, not even through a symbolic link below it.
    public let root: FilePath

    /// The file's name below ``root``: relative, without `..`.
    public let name: FilePath

    /// Where the bytes are until the file is complete, below ``root``: beside the final name, and with the transfer's ID in it.
    public let partName: FilePath

    /// What happens if there is a file of that name.
    public let overwrite: OverwritePolicy

    /// Makes a destination; called by the queue and by tests of transports.
    public init(root: FilePath, name: FilePath, partName: FilePath, overwrite: OverwritePolicy = .never) {
        self.root = root
        self.name = name
        self.partName = partName
        self.overwrite = overwrite
    }

    /// The final path.
    public var path: FilePath { root.pushing(name) }

    /// The path of the unfinished file.
    public var partPath: FilePath { root.pushing(partName) }
}

/// What happens to a file that is already at the destination.
public enum OverwritePolicy: String, Hashable, Sendable, Codable, CaseIterable {
    /// The transfer of that file fails and names it.
    case never
    /// It is replaced.
    case always
    /// It is replaced if size or modification time differ; otherwise it is left, and counts as transferred.
    case different
    /// It is replaced if the source is newer; otherwise it is left, and counts as transferred.
    case newer
}
