/// The items that ``ControllableQueue/replaceItems(_:with:in:)`` replaces or removes.
public enum ItemSelection: Hashable, Sendable, Codable {
    /// All items of the session.
    case all
    /// The items at these positions (``ItemStatus/position``), at most 10,000.
    case at([Int64])
}
