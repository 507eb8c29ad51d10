import Foundation
import TransferCore
import TransferKit

extension Scheduler {
    /// Returns a scheduler with a transport "memory" and the accounts "a" and "b".
    static func fixture(maxConcurrentSessions: Int = 1) throws -> Scheduler {
        var scheduler = Scheduler(Settings(transports: ["memory"], maxConcurrentSessions: maxConcurrentSessions))
        for name in ["a", "b"] { _ = try scheduler.perform(.saveAccount(.memory(name))) }
        return scheduler
    }

    /// Like the queue's writer, handles a command and then starts the sessions that can start.
    mutating func perform(_ command: Command, at now: DualInstant = .start) throws -> Transaction {
        var transaction = try handle(.command(command), at: now)
        transaction.append(schedule(at: now))
        commit()
        return transaction
    }

    mutating func report(_ content: RunEvent.Content, of key: SessionKey, at now: DualInstant = .start) throws -> Transaction {
        var transaction = try handle(.report(RunEvent(key: key, run: view(key)?.run ?? 0, content: content)), at: now)
        transaction.append(schedule(at: now))
        commit()
        return transaction
    }

    /// Returns whether `endpoint` is available to runs that don't probe it. The endpoint must belong to the account of the first session.
    func offers(_ endpoint: Endpoint, at now: DualInstant = .start) -> Bool {
        endpoints(for: 1, run: .max, at: now)?.available.contains(endpoint) == true
    }

    var runningIDs: [SessionID] { sessions.filter { $0.state == .running }.map(\.id) }
}

extension Account {
    /// - Parameters:
    ///   - host: The host of the endpoint; nil for the account's name.
    ///   - user: The value of the endpoint's setting "user"; nil for no setting.
    static func memory(_ name: String, at host: String? = nil, user: String? = nil) -> Account {
        let settings = user.map { ["user": $0] } ?? [:]
        return Account(name, endpoints: [Endpoint(transport: "memory", address: "memory://\(host ?? name)/", settings: settings)])
    }
}

extension SessionDraft {
    static func draft(_ account: String = "a", id: SessionID = SessionID()) -> SessionDraft {
        SessionDraft(
            id: id, account: account, name: "test", items: [ItemDraft(source: Data("/f".utf8), destination: Data("f".utf8), size: 1)])
    }
}

extension Scheduler.Settings {
    static let memory = Scheduler.Settings(transports: ["memory"])
}

extension StoreWrite {
    /// Returns the change with which a scheduler stores a session of account 1.
    static func session(_ key: SessionKey, rank: Int64, _ draft: SessionDraft, _ state: SessionState = .waiting) -> StoreWrite {
        var sessions = NewSessions(drafts: [draft], createdAt: .now)
        sessions.append(Entry(id: draft.id, key: key, rank: rank, account: 1, state: state))
        return .insertSessions(sessions)
    }
}

extension DualInstant {
    static let start = DualInstant(uptime: .zero, date: Date(timeIntervalSince1970: 0))

    static func seconds(_ seconds: Int) -> DualInstant {
        DualInstant(uptime: .seconds(seconds), date: Date(timeIntervalSince1970: Double(seconds)))
    }
}

extension TransferError {
    static let broken = TransferError(.transient, .connectionLost, "The connection broke.")
}
