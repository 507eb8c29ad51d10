/// Reports that a transport broke one of its promises.
public struct PromiseViolation: Error, Hashable, Sendable, CustomStringConvertible {
    /// The promise, as a sentence.
    public let promise: String
    /// The observed behaviour, as a sentence.
    public let observation: String

    /// The promise and the observed behaviour.
    public var description: String { "\(promise). Observed: \(observation)" }
}
