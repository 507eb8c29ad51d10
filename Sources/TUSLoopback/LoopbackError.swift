/// An error that prevents the server from starting.
public struct LoopbackError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The cause and the remedy as sentences.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
