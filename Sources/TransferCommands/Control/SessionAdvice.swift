import TransferControl
import TransferKit

extension SessionOperation {
    /// Adds advice to the error of a rejected operation: the command that the user may have meant.
    func addingAdvice(to error: QueueError, of session: SessionStatus) -> QueueError {
        let id = SessionDescription.shortID(session.id)
        if error.code == .alreadyCompleted {
            return QueueError(error.code, "The session \(session.id) is completed. \(Self.addAgain)")
        }
        guard error.code == .invalidTransition, let advice = advice(for: session.state, id) else { return error }
        return QueueError(error.code, "\(error.message) \(advice)")
    }

    private static var addAgain: String { "To transfer its files again: transferq upload or transferq download" }

    private func advice(for state: SessionState, _ id: String) -> String? {
        switch (self, state) {
        case (.enqueue, _): nil
        case (.cancel(discarding: true), .cancelled): "To remove its unfinished content: transferq remove \(id)"
        case (_, .draft): "To add it to the queue: transferq enqueue \(id)"
        case (.runNext, .completed), (.retry, .completed), (.resume, .completed), (.release, .completed): Self.addAgain
        case (.runNext, .failed), (.resume, .failed), (.release, .failed), (.runNext, .cancelled), (.resume, .cancelled),
            (.release, .cancelled):
            "To retry it: transferq retry \(id)"
        case (.runNext, .held), (.retry, .held): "To release it: transferq release \(id)"
        case (.runNext, .paused), (.retry, .paused), (.release, .paused): "To resume it: transferq resume \(id)"
        case (.retry, .waiting): "To start its next attempt now: transferq now \(id)"
        default: nil
        }
    }
}
