/// The policy for symbolic links inside a folder.
///
/// No transport creates links at the other end, so a link is either followed or skipped. A link that is itself an item is always followed
/// (``TransferItem/symbolicLinks``).
public enum SymbolicLinkPolicy: String, Hashable, Sendable, Codable, CaseIterable {
    /// Links are followed, as with `cp -rL` and `rsync -rL`. A link to a file is sent as that file, under the link's name. A link to a folder is
    /// sent as that folder, with all its content.
    ///
    /// A link to a folder that contains the link would form a cycle, so it becomes a failed item. A link to a missing target also becomes a failed
    /// item.
    case follow
    /// Links to files are followed. Links to folders are skipped, as ``ItemState/skipped`` items. A link to a missing target becomes a
    /// failed item.
    case followFiles
    /// All links are skipped, as ``ItemState/skipped`` items.
    case skip
}
