import Foundation
import Testing
import TransferCore
import TransferKit

/// Random operations, checked after each step against a reference that is too simple to be wrong.
@Suite struct SchedulerModelTests {
    @Test(arguments: 0..<200)
    func randomOperations(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var scheduler = try Scheduler.fixture()
        var reference = Reference()
        var now = Moment.start
        for number in 0..<300 {
            now = Moment(uptime: now.uptime + .seconds(Int.random(in: 0...2, using: &random)), date: now.date)
            let step = Step.random(using: &random, scheduler)
            let context = "seed \(seed), step \(number), \(step.name)"
            if Int.random(in: 0..<10, using: &random) == 0 {
                // The store refuses: as if nothing had been asked for.
                let before = Snapshot(scheduler)
                _ = try? step.apply(to: &scheduler, at: now)
                _ = scheduler.schedule(at: now)
                scheduler.undo()
                try #require(Snapshot(scheduler) == before, "undo: \(context)")
                continue
            }
            var transaction = (try? step.apply(to: &scheduler, at: now)) ?? Transaction()
            transaction.append(scheduler.schedule(at: now))
            scheduler.commit()
            reference.apply(transaction)
            try check(scheduler, reference, transaction, at: now, context)
        }
    }

    private func check(_ scheduler: Scheduler, _ reference: Reference, _ transaction: Transaction, at now: Moment, _ context: String) throws
    {
        let ids = scheduler.order.elements.compactMap { scheduler.entries[$0]?.id }
        try #require(ids == reference.order, "the events tell the order: \(context)")
        try #require(Set(ids).count == ids.count, "no session is doubled: \(context)")
        try #require(scheduler.slotsInUse <= scheduler.sessionLimit, "no more run than may: \(context)")
        try #require(reference.violations.isEmpty, "\(reference.violations): \(context)")
        let states = Dictionary(uniqueKeysWithValues: scheduler.entries.values.map { ($0.id, $0.state) })
        try #require(states == reference.states, "what is stored is what is decided: \(context)")
        if scheduler.flags.mode == .stopped { try #require(scheduler.slotsInUse == 0, "stopped means stopped: \(context)") }
        let eligible = scheduler.entries.values.contains {
            $0.state == .waiting && scheduler.accounts[$0.account]?.block == nil && ($0.retryAt?.uptime ?? .zero) <= now.uptime
        }
        if scheduler.flags.mode == .running, eligible {
            try #require(scheduler.slotsInUse == scheduler.sessionLimit, "a free slot is used: \(context)")
        }
        for key in scheduler.order.elements where scheduler.entries[key]?.state == .waiting {
            try #require(scheduler.why(key, at: now) != nil, "each that waits has a reason: \(context)")
        }
    }
}

/// One random thing that happens to a scheduler.
private enum Step {
    case command(Command)
    case report(SessionKey, activation: UInt64, RunOutcome)
    case tick

    static func random(using random: inout SplitMix64, _ scheduler: Scheduler) -> Step {
        let ids = scheduler.order.elements.compactMap { scheduler.entries[$0]?.id }
        switch Int.random(in: 0..<20, using: &random) {
        case 0..<5: return .command(.enqueue((0..<Int.random(in: 1...3, using: &random)).map { _ in draft(using: &random) }))
        case 5, 6: return .command(.start)
        case 7: return .command(.stop(.interrupt))
        case 8, 9: return ids.randomElement(using: &random).map { .command(.perform(.remove(), .group(.sessions([$0])))) } ?? .tick
        case 10: return .command(.unblockAccount(name: Bool.random(using: &random) ? "a" : "b"))
        case 11: return .tick
        default:
            guard let key = scheduler.flags.running.sorted().first, let entry = scheduler.entries[key] else {
                guard let activation = scheduler.flags.ending.sorted().first else { return .tick }
                return .report(0, activation: activation, .interrupted)
            }
            return .report(key, activation: entry.activation, outcome(using: &random, isStopping: scheduler.flags.mode == .stopping))
        }
    }

    private static func draft(using random: inout SplitMix64) -> SessionDraft {
        let bytes = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
        let uuid = unsafe bytes.withUnsafeBytes { unsafe $0.loadUnaligned(as: UUID.self) }
        return .draft(Bool.random(using: &random) ? "a" : "b", id: SessionID(uuid: uuid))
    }

    private static func outcome(using random: inout SplitMix64, isStopping: Bool) -> RunOutcome {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: .finished(failure: .broken, itemsSeen: 1)
        case 1: .backoff(.seconds(Int.random(in: 1...20, using: &random)), .broken)
        case 2: .accountBlocked(TransferError(.credentials, .credentialsRejected, "No."), .memory(Bool.random(using: &random) ? "a" : "b"))
        case 3 where isStopping: .interrupted
        default: .finished(failure: nil, itemsSeen: 1)
        }
    }

    var name: String {
        switch self {
        case .command(let command): "\(command)".prefix { $0 != "(" }.description
        case .report(_, _, let outcome): "\(outcome)"
        case .tick: "tick"
        }
    }

    func apply(to scheduler: inout Scheduler, at now: Moment) throws -> Transaction {
        switch self {
        case .command(let command): try scheduler.handle(.command(command), at: now)
        case .report(let key, let activation, let outcome):
            scheduler.handle(Report(key: key, run: activation, content: .ended(outcome)), at: now)
        case .tick: try scheduler.handle(.tick, at: now)
        }
    }
}

/// What someone knows who sees only what was written and told.
private struct Reference {
    var order: [SessionID] = []
    var states: [SessionID: SessionState] = [:]
    var violations: [String] = []
    private var ids: [SessionKey: SessionID] = [:]
    private var activations: Set<UInt64> = []

    mutating func apply(_ transaction: Transaction) {
        for write in transaction.writes {
            switch write {
            case .insertSession(let key, _, _, let draft, _):
                ids[key] = draft.id
                states[draft.id] = .waiting
            case .deleteSession(let key):
                if let id = ids.removeValue(forKey: key) { states[id] = nil }
            case .setRunning(let key, _): set(key, .running)
            case .setWaiting(let key, _): set(key, .waiting)
            case .endSession(let key, let state, _, _): set(key, state)
            default: break
            }
        }
        for event in transaction.events {
            switch event {
            case .added(let ids, let index): order.insert(contentsOf: ids, at: index)
            case .removed(let ids, let indices):
                if order.remove(at: indices[0]) != ids[0] { violations.append("removed another session than told") }
            default: break
            }
        }
        for action in transaction.actions {
            if case .run(_, _, let activation, _) = action, !activations.insert(activation).inserted {
                violations.append("activation \(activation) was used twice")
            }
        }
    }

    private mutating func set(_ key: SessionKey, _ state: SessionState) {
        guard let id = ids[key] else { return violations.append("a change of a session that does not exist") }
        let before = states[id]
        if state == .running, before != .waiting { violations.append("\(String(describing: before)) began to run") }
        states[id] = state
    }
}

private struct Snapshot: Equatable {
    var flags: Scheduler.Flags
    var order: [SessionKey]
    var entries: [SessionKey: Scheduler.Entry]
    var keys: [SessionID: SessionKey]
    var accounts: [AccountKey: Scheduler.AccountEntry]
    var accountKeys: [String: AccountKey]

    init(_ scheduler: Scheduler) {
        flags = scheduler.flags
        order = scheduler.order.elements
        entries = scheduler.entries
        keys = scheduler.keys
        accounts = scheduler.accounts
        accountKeys = scheduler.accountKeys
    }
}

/// A small generator with a seed, so that a failing run can be repeated (Steele, Lea and Flood, 2014).
struct SplitMix64: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
