public import SystemPackage

/// Where a downloaded file goes on this machine.
///
/// Bytes are written to ``partPath`` and synced before a checkpoint vouches for them. The complete file is synced, gets its name at once and as a
/// whole, and then its folder is synced.
///
/// The part keeps its own name beside the final one, as a second link to the same file, until the queue has stored that the download is
/// complete, and removes it. So an attempt that comes after a kill in between finds that there is nothing left to do. On a file
/// system without links the part is renamed, after a note beside it says to which name. `FileWriter`, of the product TransportSupport, does all of this.
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

    /// What the part is called for a moment on its way to replace a file, or the note of a part that is renamed.
    package static func placingName(of partName: FilePath) -> FilePath {
        FilePath(bytes: partName.bytes + Array(".new".utf8))
    }
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
    /// It is left, whatever it is, and counts as transferred.
    case skip
    /// It is left, and the new one gets a number: `reel (1).mov` for `reel.mov`.
    case rename
}
