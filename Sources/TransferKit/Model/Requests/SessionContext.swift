import Foundation

/// An app's own value for a session.
enum SessionContext {
    /// Checks a context. It rejects numbers that no `Double` can hold, such as `1e400`, although they are valid JSON (RFC 8259, section 6): the
    /// context is printed unchanged in one line with the rest of a session, and a reader could be unable to parse that line (RFC 7493, section
    /// 2.2). Digits beyond a `Double`'s precision are kept.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest` if the context is not JSON, or has such a number.
    static func validate(_ context: Data?) throws(QueueError) {
        guard let context else { return }
        do {
            _ = try JSONSerialization.jsonObject(with: context, options: .fragmentsAllowed)
        } catch {
            throw QueueError(
                .invalidRequest,
                "The context of a session is not JSON, or has a number outside the range of a Double, such as 1e400. Write it as a string.")
        }
    }
}
