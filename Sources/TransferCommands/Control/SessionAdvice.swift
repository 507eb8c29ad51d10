import TransferControl
import TransferKit

extension SessionOperation {
    /// The refusal of a session that this does not fit, with the command that does what may have been meant.
    func refusal(_ error: QueueError, of session: SessionStatus) -> QueueError {
        let id = SessionDescription.shortID(session.id)
        if error.code == .alreadyCompleted {
            return QueueError(error.code, "The session \(session.id) is completed. \(Self.addAgain)")
        }
        guard error.code == .invalidTransition, let advice = advice(for: session.state, id) else { return error }
        return QueueError(error.code, "\(error.message) \(advice)")
    }

    private static var addAgain: String { "To transfer its files once more, add them again: transferq add" }

    private func advice(for state: SessionState, _ id: String) -> String? {
        switch (self, state) {
        case (.runNext, .completed), (.retry, .completed), (.resume, .completed), (.release, .completed): Self.addAgain
        case (.runNext, .failed), (.resume, .failed), (.release, .failed), (.runNext, .cancelled), (.resume, .cancelled),
            (.release, .cancelled):
            "To let it wait for its turn again: transferq retry \(id)"
        case (.runNext, .held), (.retry, .held), (.resume, .held): "To let it wait for its turn again: transferq release \(id)"
        case (.runNext, .paused), (.retry, .paused), (.release, .paused): "To let it go on: transferq resume \(id)"
        default: nil
        }
    }
}
