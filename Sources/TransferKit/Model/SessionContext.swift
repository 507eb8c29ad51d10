import Foundation

/// What an app keeps with a session.
enum SessionContext {
    /// A number that no `Double` can hold, such as `1e400`, is refused though JSON's grammar has it (RFC 8259, section 6): the context is told
    /// as it is in one line with all else of a session, and a reader may not be able to read any of that line then (RFC 7493, section 2.2). Digits
    /// beyond a `Double`'s precision are kept.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest` if it is not JSON, or has such a number.
    static func validate(_ context: Data?) throws(QueueError) {
        guard let context else { return }
        do {
            _ = try JSONSerialization.jsonObject(with: context, options: .fragmentsAllowed)
        } catch {
            throw QueueError(
                .invalidRequest,
                "The context of a session is not JSON, or has a number out of the range of a Double, as 1e400; write that as a text.")
        }
    }
}
