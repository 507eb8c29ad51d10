import Foundation

enum SessionContext {
    /// Rejects a context that is not JSON, or that contains a number outside the range of a `Double`, such as `1e400`.
    ///
    /// Such numbers are valid JSON (RFC 8259, section 6), but many JSON readers can't parse them (RFC 7493, section 2.2). Programs print the context
    /// unchanged within the session's JSON, so these readers could not parse the session's JSON. Numbers with more digits than a `Double` can
    /// represent are accepted unchanged.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest`.
    static func validate(_ context: Data?) throws(QueueError) {
        guard let context else { return }
        do {
            _ = try JSONSerialization.jsonObject(with: context, options: .fragmentsAllowed)
        } catch {
            throw QueueError(
                .invalidRequest,
                "The session's context is not JSON, or has a number too large for Double, like 1e400. Write the number as a string.")
        }
    }
}
