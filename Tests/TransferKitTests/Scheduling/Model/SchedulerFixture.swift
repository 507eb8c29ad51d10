import Foundation
import TransferCore
import TransferKit

/// A queue for readable tests. Sessions have short names. After each step, the fixture compares the scheduler's state with the state of
/// ``ReferenceQueue``, a simple implementation of the same rules.
struct SchedulerFixture {
    private(set) var run: ModelRun

    /// Creates a running queue with the accounts `a` and `b`, which have one endpoint each.
    init(limit: Int = 1, isStrict: Bool = false, accountLimit: Int? = nil) throws {
        run = ModelRun(ModelSequence.Settings(isStrict: isStrict, limit: limit))
        for name in ["a", "b"] {
            var account = Account.memory(name)
            account.maxConcurrentSessions = accountLimit
            try perform(.saveAccount(account))
        }
        try perform(.start)
    }

    /// The states in the order of the queue, for example `A=running B=waiting`.
    var states: String { run.scheduler.observation(at: run.now).line }

    var mode: String { run.scheduler.observation(at: run.now).mode }

    var isIdle: Bool { run.scheduler.observation(at: run.now).isIdle }

    func session(_ name: String) -> Observation.Session? {
        run.scheduler.observation(at: run.now).sessions.first { $0.id == SessionID(named: name) }
    }

    func waitReason(of name: String) -> WaitReason? { session(name)?.why }

    /// Performs a command. Returns the code of the error that the command throws, if any.
    @discardableResult
    mutating func perform(_ command: Command) throws -> QueueError.Code? {
        try run.handle(.command(command)).code
    }

    /// Adds sessions of an account at the end. The names are separated by spaces.
    mutating func add(_ names: String, to account: String = "a", isHeld: Bool = false) throws {
        let drafts = names.split(separator: " ").map { SessionDraft.draft(account, id: SessionID(named: String($0))) }
        try perform(.enqueue(drafts, isHeld: isHeld))
    }

    mutating func add(_ name: String, after other: String, acceptsAnyEnd: Bool = false, at index: Int? = nil) throws -> QueueError.Code? {
        var draft = SessionDraft.draft(id: SessionID(named: name))
        draft.dependency = SessionDependency(SessionID(named: other), acceptsAnyEnd: acceptsAnyEnd)
        return try perform(.enqueue([draft], at: index))
    }

    @discardableResult
    mutating func apply(_ operation: SessionOperation, _ name: String) throws -> QueueError.Code? {
        try perform(.perform(operation, .one(.id(SessionID(named: name)))))
    }

    mutating func end(_ name: String, _ outcome: RunOutcome = .finished(failure: nil, ignoresNewFiles: false)) throws {
        try report(name, .ended(outcome))
    }

    /// Ends the run of a stopping session.
    mutating func finishStopping(_ name: String) throws {
        try end(name, .interrupted)
    }

    mutating func report(_ name: String, _ content: RunEvent.Content) throws {
        try run.handle(.report(SessionID(named: name), runsAgo: 0, content))
    }

    mutating func disk(free: Int64) throws {
        try run.handle(.disk(free: free))
    }

    mutating func advance(seconds: Int) throws {
        try run.play(ModelStep(wait: seconds, kind: .event(.tick)))
    }

    mutating func restart() throws {
        try run.play(ModelStep(wait: 0, kind: .restart))
    }

    /// Ends the running sessions one by one, and returns their names in the order in which they ended.
    mutating func finishAll() throws -> String {
        var names: [String] = []
        for _ in 0..<100 {
            guard let next = run.scheduler.observation(at: run.now).sessions.first(where: { $0.state == .running }) else { break }
            if next.isEnding {
                try finishStopping(next.id.testName)
            } else {
                try end(next.id.testName)
                names.append(next.id.testName)
            }
        }
        return names.joined(separator: " ")
    }
}
