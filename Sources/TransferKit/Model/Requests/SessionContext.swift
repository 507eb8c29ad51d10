import Foundation

/// Checks the context of a session, which is a JSON value that the app chooses.
enum SessionContext {
    /// Checks a context.
    ///
    /// Rejects numbers outside the range of a `Double`, such as `1e400`, although they are valid JSON (RFC 8259, section 6). Programs print the
    /// context unchanged as a part of the session's JSON, and many JSON readers could not parse such a number (RFC 7493, section 2.2). Numbers with
    /// more digits than a `Double` can represent are accepted unchanged.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest` if the context is not JSON, or has such a number.
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
