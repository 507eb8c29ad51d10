import Foundation

/// What an app keeps with a session.
enum SessionContext {
    /// - Throws: ``QueueError`` with the code `invalidRequest` if it is not JSON.
    static func validate(_ context: Data?) throws(QueueError) {
        guard let context else { return }
        do {
            _ = try JSONSerialization.jsonObject(with: context, options: .fragmentsAllowed)
        } catch {
            throw QueueError(.invalidRequest, "The context of a session is not JSON.")
        }
    }
}
