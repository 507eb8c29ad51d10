import TransferControl
import TransferKit
import TransportSupport

/// The exit status of the program. Commands throw a status if they have already printed the reason.
enum ExitStatus: Int32, Error {
    case done = 0
    /// Sessions failed or need user action, a check found a problem, a question was not answered with yes, or the output can't be written.
    case incomplete = 1
    /// The arguments are wrong, or a file can't be read. Nothing was changed.
    case usage = 2
    /// The queue can't be opened or reached, its storage failed, or an unexpected error occurred.
    case storage = 3
    /// The session, account or index does not exist, or the current state of the session or queue forbids the operation.
    case rejected = 4
    /// A signal interrupted the command.
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
package struct CommandFailure: Error {
    let status: ExitStatus
    package let message: String

    init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }
}

extension ControllableQueue {
    /// Returns an account that must exist.
    ///
    /// - Throws: A `CommandFailure` if there is no account with the name. The message names similar accounts.
    func existingAccount(_ name: String) async throws -> AccountStatus {
        if let status = try await account(name) { return status }
        let near = try await accounts().map(\.account.name).nearest(to: name).map { "\"\($0)\"" }
        let advice = near.isEmpty ? "" : " Did you mean \(near.joined(separator: " or "))?"
        throw CommandFailure(.rejected, "There is no account named \"\(name)\".\(advice) To list accounts: transferq account list")
    }
}
