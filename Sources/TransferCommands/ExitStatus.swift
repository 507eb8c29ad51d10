import TransferKit

/// How the program ends. Thrown by commands that have said all there is to say.
enum ExitStatus: Int32, Error {
    case done = 0
    /// Some sessions failed or can't go on without a person; or the diagnosis found something wrong.
    case incomplete = 1
    case usage = 2
    case storage = 3
    /// No such session, account or index, or the operation does not fit the state.
    case unfit = 4
    case interrupted = 130

    init(_ code: QueueError.Code) {
        switch code {
        case .invalidAccount, .invalidRequest, .unreadableItems, .fileExists: self = .usage
        case .noSuchAccount, .noSuchSession, .accountInUse, .indexOutOfRange, .staleOrder, .invalidTransition, .alreadyCompleted,
            .duplicate, .hasDependents, .impossibleOrder:
            self = .unfit
        default: self = .storage
        }
    }
}

/// Why a command can't be done, for a person.
struct CommandFailure: Error {
    let status: ExitStatus
    let message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }
}
