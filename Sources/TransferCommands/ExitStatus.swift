import TransferKit

/// The exit status of the program. Commands throw a status if they have already printed the reason.
enum ExitStatus: Int32, Error {
    case done = 0
    /// Sessions failed or need user action, a check found a problem, or the output can't be written.
    case incomplete = 1
    case usage = 2
    /// The queue can't be opened or reached, or its store failed.
    case storage = 3
    /// The session, account or index does not exist, or its state forbids the operation.
    case rejected = 4
    case interrupted = 130

    init(_ code: QueueError.Code) {
        switch code {
        case .invalidAccount, .invalidRequest, .unreadableItems, .fileExists: self = .usage
        case .noSuchAccount, .noSuchSession, .accountInUse, .indexOutOfRange, .staleOrder, .invalidTransition, .alreadyCompleted,
            .duplicate, .hasDependents, .impossibleOrder:
            self = .rejected
        default: self = .storage
        }
    }
}

/// The failure of a command: its exit status and a message for the user.
struct CommandFailure: Error {
    let status: ExitStatus
    let message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    static func unknownAccount(_ name: String) -> CommandFailure {
        CommandFailure(.rejected, "There is no account named \"\(name)\". To list accounts: transferq account list")
    }
}
