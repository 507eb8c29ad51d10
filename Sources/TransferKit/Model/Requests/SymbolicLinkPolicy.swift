/// The policy for symbolic links inside a folder.
///
/// No transport makes links at the other end, so a link is either followed or skipped. The policy does not apply to a link that is an item: such a
/// link is always followed.
public enum SymbolicLinkPolicy: String, Hashable, Sendable, Codable, CaseIterable {
    /// Links are followed, as by `cp -rL` and `rsync -rL`: a link to a file is sent as that file under the link's name, a link to a folder as that
    /// folder with all its content.
    ///
    /// A link to a folder that contains it would never end. Such a link, and a link to a missing target, are items that fail.
    case follow
    /// Links to files are followed. Links to folders are skipped, as ``ItemState/skipped`` items.
    case followFiles
    /// All links are skipped, as ``ItemState/skipped`` items.
    case skip
}
