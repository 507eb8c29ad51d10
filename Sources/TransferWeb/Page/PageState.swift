import TransferKit

/// The content of the web page: the state of the queue, and the choices of the user.
struct PageState: Sendable {
    /// A tab of the list of sessions.
    enum View: String, CaseIterable, Sendable {
        case queue = ""
        case active
        case history
        case drafts

        var title: String {
            switch self {
            case .queue: "Queue"
            case .active: "Unfinished"
            case .history: "History"
            case .drafts: "Drafts"
            }
        }

        /// The states of the view's sessions; empty for all.
        var states: Set<SessionState> {
            switch self {
            case .queue: []
            case .active: [.running, .waiting, .paused, .held]
            case .history: [.completed, .failed, .cancelled]
            case .drafts: [.draft]
            }
        }
    }

    let client: Admission.Client
    let formToken: String
    let view: View
    let filter: SessionFilter
    /// The revision of the order of the listed sessions.
    let order: UInt64
    let status: QueueStatus
    let statistics: QueueStatistics
    let accounts: [AccountStatus]
    let page: SessionFilter.Page
    let events: [EventFeed.NumberedEvent]
    /// The names of the sessions that the events concern, and of the sessions for which listed sessions wait.
    let names: [SessionID: String]
    /// The session whose details are open.
    var detail: SessionDetail?
    /// The message about a rejected form, or about a session that does not exist; nil for none.
    var message: String?

    var canWrite: Bool { client.access == .write }
}
