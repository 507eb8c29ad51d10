import Foundation
import TransferCore
import TransferKit

/// The visible state of a queue, as far as it must survive the end of the process. Running sessions count as waiting.
struct QueueSnapshot: Hashable {
    struct Session: Hashable, CustomStringConvertible {
        let name: String
        let state: SessionState
        let account: String
        let tags: [String]
        let context: Data?
        let files: Int

        var description: String { "\(name) \(state.rawValue), \(files) files" }

        /// Whether this session is in a possible state between two snapshots: it may have started, and some of its folders may be expanded.
        func isBetween(_ before: Session, _ after: Session) -> Bool {
            name == before.name && account == before.account && tags == before.tags && context == before.context
                && [before.state, after.state, .waiting].contains(state)
                && (min(before.files, after.files)...max(before.files, after.files)).contains(files)
        }
    }

    /// The sessions in the order of the queue, followed by the drafts.
    let sessions: [Session]
    let accounts: [Account]
    let blockedAccounts: [String]
    let maxConcurrentSessions: Int
    let rateLimit: Int64?

    static func of(_ queue: TransferQueue) async throws -> QueueSnapshot {
        let status = await queue.status()
        let accounts = await queue.accounts()
        return QueueSnapshot(
            sessions: try await (queue.sessions() + queue.sessions(in: .state(.draft))).map {
                Session(
                    name: $0.name, state: $0.state == .running ? .waiting : $0.state, account: $0.account, tags: $0.tags.sorted(),
                    context: $0.context, files: $0.statistics.files)
            },
            accounts: accounts.map(\.account), blockedAccounts: accounts.filter { $0.blockingError != nil }.map(\.account.name),
            maxConcurrentSessions: status.maxConcurrentSessions, rateLimit: status.rateLimit)
    }

    static let empty = QueueSnapshot(sessions: [], accounts: [], blockedAccounts: [], maxConcurrentSessions: 1, rateLimit: nil)
}
