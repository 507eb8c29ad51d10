import Foundation
import TransferCore
import TransferKit

extension Scheduler {
    /// A scheduler with a transport "memory" and the accounts "a" and "b".
    static func fixture() throws -> Scheduler {
        var scheduler = Scheduler(transports: ["memory"])
        for name in ["a", "b"] { _ = try scheduler.perform(.saveAccount(.memory(name))) }
        return scheduler
    }

    /// Handles a command and what may start because of it, as the writer does.
    mutating func perform(_ command: Command, at now: Moment = .start) throws -> Transaction {
        var transaction = try handle(.command(command), at: now)
        transaction.append(schedule(at: now))
        commit()
        return transaction
    }

    mutating func report(_ content: Report.Content, of key: SessionKey, at now: Moment = .start) -> Transaction {
        var transaction = handle(Report(key: key, run: entries[key]?.activation ?? 0, content: content), at: now)
        transaction.append(schedule(at: now))
        commit()
        return transaction
    }

    var runningIDs: [SessionID] { flags.running.compactMap { entries[$0]?.id } }
}

extension Account {
    static func memory(_ name: String) -> Account {
        Account(name, endpoints: [Endpoint(transport: "memory", address: "memory://\(name)/")])
    }
}

extension SessionDraft {
    static func draft(_ account: String = "a", id: SessionID = SessionID()) -> SessionDraft {
        SessionDraft(
            id: id, account: account, name: "test", items: [ItemDraft(source: Data("/f".utf8), destination: Data("f".utf8), size: 1)])
    }
}

extension Moment {
    static let start = Moment(uptime: .zero, date: Date(timeIntervalSince1970: 0))

    static func seconds(_ seconds: Int) -> Moment {
        Moment(uptime: .seconds(seconds), date: Date(timeIntervalSince1970: Double(seconds)))
    }
}

extension TransferError {
    static let broken = TransferError(.transient, .connectionLost, "The connection broke.")
}
