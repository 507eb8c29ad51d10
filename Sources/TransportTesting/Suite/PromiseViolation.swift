/// A promise that a transport broke.
public struct PromiseViolation: Error, Hashable, Sendable, CustomStringConvertible {
    /// The promise as a sentence.
    public let promise: String
    /// What was seen instead, as a sentence.
    public let observation: String

    /// The promise and what was seen instead.
    public var description: String { "\(promise) — but: \(observation)" }
}
