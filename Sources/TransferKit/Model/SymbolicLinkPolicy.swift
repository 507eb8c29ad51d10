/// What becomes of the symbolic links inside a folder that is sent.
///
/// No transport makes links at the other end, so a link is sent as what it leads to, or not at all. It does not concern a link that is named as
/// an item itself: that one is always followed.
public enum SymbolicLinkPolicy: String, Hashable, Sendable, Codable, CaseIterable {
    /// As `cp -rL` and `rsync -rL` do: a link to a file is sent as that file under the link's name, a link to a folder as that folder with all
    /// that is in it.
    ///
    /// A link to a folder that it is itself in would have no end; it and a link that leads nowhere are items that fail.
    case follow
    /// Links to files are followed; links to folders are left out, as ``ItemState/skipped`` items.
    case followFiles
    /// All links are left out, as ``ItemState/skipped`` items.
    case skip
}
