/// Why the server can't start.
public struct LoopbackError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What happened and what to do, as a sentence.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
