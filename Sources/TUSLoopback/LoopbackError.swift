/// An error at the start of the server.
public struct LoopbackError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The cause and the remedy as sentences.
    public let description: String

    init(_ description: String) {
        self.description = description
    }
}
