import Foundation
import TransferCore
import TransferKit

/// A generator of random steps. Each step depends on the seed and on the state of the queue.
struct StepGenerator {
    var random: SplitMix64
    private var draftCount = 0

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
    }

    mutating func settings() -> ModelSequence.Settings {
        var settings = ModelSequence.Settings(isStrict: oneIn(6), limit: number(1...3))
        if oneIn(4) { settings.keptCount = number(0...3) } else if oneIn(4) { settings.keptSeconds = number(20...120) }
        return settings
    }

    /// Returns the first steps, which save the accounts and usually start the queue.
    mutating func opening() -> [ModelStep] {
        var commands = ["a", "b", "c"].map { Command.saveAccount(account($0)) }
        if !oneIn(8) { commands.append(.start) }
        return commands.map { ModelStep(wait: 0, kind: .event(.command($0))) }
    }

    mutating func next(after queue: ReferenceQueue) -> ModelStep {
        let wait = oneIn(3) ? number(0...40) : number(0...2)
        switch number(0...40) {
        case 0: return ModelStep(wait: wait, kind: .restart)
        case 40: return ModelStep(wait: wait, kind: .clock(oneIn(2) ? number(-2_000...2_000) : number(-30...30)))
        case 1, 2: return ModelStep(wait: wait, kind: .undo((0..<number(1...3)).map { _ in event(queue) }))
        default: return ModelStep(wait: wait, kind: .event(event(queue)))
        }
    }

    private mutating func event(_ queue: ReferenceQueue) -> ModelEvent {
        switch number(0...19) {
        case 0...6: report(queue) ?? .tick
        case 7: oneIn(3) ? .disk(free: oneIn(3) ? Int64(number(0...999)) : 1_000) : .tick
        case 8...9: .command(enqueueing(queue))
        case 10...17:
            if oneIn(40), let id = queue.sessions.map(\.id).randomElement(using: &random) {
                .command(.quarantine(id, "for a test"))
            } else if oneIn(20), let id = queue.sessions.first(where: { $0.state == .completed && $0.deduplicationKey != nil })?.id {
                // By now, another session may have the same deduplication key.
                .command(.perform(.run(again: true), .one(.id(id))))
            } else {
                .command(.perform(operation(queue), target(queue)))
            }
        default: .command(otherCommand(queue))
        }
    }

    // MARK: Run events

    private mutating func report(_ queue: ReferenceQueue) -> ModelEvent? {
        let running = queue.sessions.filter { $0.run != nil }.map(\.id) + queue.leftovers.map(\.id)
        if oneIn(12), let id = queue.runs.keys.sorted(by: { $0.testName < $1.testName }).randomElement(using: &random) {
            return .report(id, runsAgo: number(0...2), content(of: id, queue))
        }
        return running.randomElement(using: &random).map { .report($0, runsAgo: 0, content(of: $0, queue)) }
    }

    private mutating func content(of id: SessionID, _ queue: ReferenceQueue) -> RunEvent.Content {
        let session = queue.sessions.first { $0.id == id }
        let account = session.flatMap { queue.account($0.account) }?.account ?? self.account("a")
        let endpoint = account.endpoints.randomElement(using: &random) ?? account.endpoints[0]
        switch number(0...20) {
        case 17: return .endpoint(endpoint)
        case 18...20: return .probe(endpoint)
        case 14...15: return .file(position: Int64(number(0...2)), .checkpoint(.partial, endpoint: endpoint, generation: 1, .ofModel))
        case 16:
            let report: FileEvent =
                oneIn(2) ? .completed(TransferReceipt(bytes: 1), endpoint: endpoint) : .restarted(generation: 2, .broken)
            return .file(position: Int64(number(0...2)), report)
        case 0: return .connected
        case 1: return .endpointWorks(endpoint)
        case 2...4: return .endpointFailed(endpoint, [.broken, .outage, .proxyResponse][number(0...2)])
        case 5: return .hostBusy(endpoint, .seconds(number(1...60)))
        case 6: return .attemptFailed(.broken, retryIn: .milliseconds(500), isLastInFlight: oneIn(2))
        default: return .ended(outcome(account, isEnding: session?.isEnding ?? true))
        }
    }

    private mutating func outcome(_ account: Account, isEnding: Bool) -> RunOutcome {
        if isEnding, !oneIn(4) { return .interrupted }
        switch number(0...11) {
        case 0...4: return .finished(failure: nil, ignoresNewFiles: false)
        case 5...6: return .finished(failure: .broken, ignoresNewFiles: false)
        case 7: return .backoff(.seconds(number(1...40)), [.broken, .outage, .proxyResponse][number(0...2)])
        case 8: return .endpointsUnavailable(.broken)
        case 9:
            let definition = oneIn(4) ? self.account(account.name) : account
            return .accountBlocked(TransferError(oneIn(2) ? .credentials : .trust, .credentialsRejected, "No."), definition)
        case 10: return .noSpace(TransferError(.noSpace, .diskFull, "Full."))
        default: return .interrupted
        }
    }

    // MARK: Commands

    private mutating func enqueueing(_ queue: ReferenceQueue) -> Command {
        let count = number(1...3)
        var ids = queue.sessions.map(\.id)
        let drafts = (0..<count).map { _ in draft(&ids) }
        if oneIn(5) { return .saveDrafts(drafts) }
        let index = oneIn(2) ? nil : number(-1...(queue.sessions.count + 1))
        return .enqueue(drafts, at: index, expecting: revision(queue), isHeld: oneIn(6))
    }

    private mutating func draft(_ ids: inout [SessionID]) -> SessionDraft {
        draftCount += 1
        var draft = SessionDraft(id: SessionID(named: "S\(draftCount)"), account: oneIn(60) ? "nobody" : accountName(), name: "test")
        draft.items = (0..<number(1...3)).map { ItemDraft(source: Data("/f\($0)".utf8), destination: Data("f\($0)".utf8), size: 1) }
        if oneIn(3) { draft.options.allowsExpensiveNetwork = false }
        draft.tags = ["red", "blue"].filter { _ in oneIn(3) }
        if oneIn(3) {
            draft.deduplicationKey = "k\(number(0...1))"
            draft.deduplicatesCompleted = oneIn(4)
        }
        if oneIn(5) { draft.notBefore = Date(timeIntervalSince1970: Double(number(0...3000))) }
        if oneIn(4) {
            let other = oneIn(20) ? SessionID(named: "S\(draftCount + number(0...1))") : ids.randomElement(using: &random)
            draft.dependency = other.map { SessionDependency($0, acceptsAnyEnd: oneIn(2)) }
        }
        ids.append(draft.id)
        return draft
    }

    private mutating func operation(_ queue: ReferenceQueue) -> SessionOperation {
        switch number(0...23) {
        case 0...2: .run(again: oneIn(2))
        case 3: .runNext
        case 4...5: .pause
        case 6...7: .resume
        case 8: .hold
        case 9...10: .release
        case 11...12: .yield
        case 13: .cancel(discarding: oneIn(2))
        case 14: .retry
        case 15...16: .move(to: destination(queue))
        case 17...20: .update(update(queue))
        case 21...22: .enqueue(to: destination(queue), isHeld: oneIn(4))
        default: .remove(isForced: oneIn(2))
        }
    }

    private mutating func update(_ queue: ReferenceQueue) -> SessionUpdate {
        var update = SessionUpdate()
        if oneIn(2) { update.tags = ["red", "blue"].filter { _ in oneIn(2) } }
        if oneIn(3) { update.allowsExpensiveNetwork = oneIn(2) }
        if oneIn(3) { update.account = accountName() }
        if oneIn(8) { update.overwrite = .always }
        if oneIn(3) { update.notBefore = oneIn(3) ? .remove : .set(Date(timeIntervalSince1970: Double(number(0...3000)))) }
        if oneIn(2) {
            let other = queue.sessions.map(\.id).randomElement(using: &random) ?? SessionID(named: "missing")
            update.dependency = oneIn(4) ? .remove : .set(SessionDependency(other, acceptsAnyEnd: oneIn(2)))
        }
        return update
    }

    private mutating func destination(_ queue: ReferenceQueue) -> MoveDestination {
        let other = queue.sessions.map(\.id).randomElement(using: &random) ?? SessionID(named: "missing")
        switch number(0...4) {
        case 0: return .index(number(-1...max(1, queue.sessions.count)), expecting: revision(queue))
        case 1: return .before(other)
        case 2: return .after(other)
        case 3: return .front
        default: return .end
        }
    }

    private mutating func target(_ queue: ReferenceQueue) -> SessionTarget {
        let ids = queue.sessions.map(\.id)
        if oneIn(12) { return .group(.state(.draft)) }
        if oneIn(8), let draft = queue.sessions.last, draft.state == .draft { return .one(.id(draft.id)) }
        switch number(0...23) {
        case 22...23: return staleSessions(queue)
        case 20...21: return .group(.tag(oneIn(2) ? "red" : "blue"))
        case 0: return .group(.all)
        case 1: return .group(.account(accountName()))
        case 2...3: return .group(.failed)
        case 4...5: return .group(.sessions(ids.filter { _ in oneIn(3) }))
        case 6: return .one(.id(SessionID(named: "missing")))
        case 7...10:
            return .one(.index(number(0...ids.count), expecting: revision(queue)))
        default: return .one(.id(ids.randomElement(using: &random) ?? SessionID(named: "missing")))
        }
    }

    /// Returns sessions that may have left their group, or the queue, since they were looked up.
    private mutating func staleSessions(_ queue: ReferenceQueue) -> SessionTarget {
        let ids = queue.sessions.map(\.id).filter { _ in oneIn(2) } + [SessionID(named: "missing")]
        switch number(0...3) {
        case 0: return .found(ids, of: .all)
        case 1: return .found(ids, of: .account(accountName()))
        case 2: return .found(ids, of: .failed)
        default:
            let tag = oneIn(2) ? "red" : "blue"
            return .found(queue.sessions.filter { $0.earlierTags.contains(tag) }.map(\.id), of: .tag(tag))
        }
    }

    /// Returns nil or a revision of the order, usually the current revision.
    private mutating func revision(_ queue: ReferenceQueue) -> UInt64? {
        oneIn(2) ? nil : queue.orderRevision &- (oneIn(5) ? 1 : 0)
    }

    private mutating func otherCommand(_ queue: ReferenceQueue) -> Command {
        switch number(0...20) {
        case 20: .newRoute
        case 19:
            .replaceItems(
                oneIn(2) ? .all : .at([0]), ReplaceableItems(), with: [],
                in: .id(queue.sessions.map(\.id).randomElement(using: &random) ?? SessionID(named: "missing")))
        case 18: .retryEndpoints(account: accountName())
        case 16: .setNetwork(.unconstrained)
        case 17: .setNetwork(oneIn(3) ? .unavailable : .expensive)
        case 0...3: .start
        case 4: .stop(.interrupt)
        case 5...6: .stop(.drain, deadline: oneIn(2) ? nil : .seconds(number(0...30)))
        case 7: .setMaxConcurrentSessions(number(1...3), account: nil)
        case 8: .setMaxConcurrentSessions(oneIn(2) ? nil : number(1...2), account: accountName())
        case 9...10: .unblockAccount(name: accountName())
        case 11: .saveAccount(account(accountName()))
        case 12: replacement(accountName(), queue)
        case 13: .deleteAccount(name: accountName(), cascade: oneIn(4))
        case 14: .setRateLimit(number(1...9) == 1 ? nil : 1_000, account: oneIn(2) ? nil : accountName())
        default:
            .addItems(
                .id(queue.sessions.map(\.id).randomElement(using: &random) ?? SessionID(named: "missing")),
                [ItemDraft(source: Data("/g".utf8), destination: Data("g".utf8), size: 1)])
        }
    }

    /// Returns a command that replaces an account. The command expects the current definition of the account or, usually wrongly, no account with
    /// this name.
    private mutating func replacement(_ name: String, _ queue: ReferenceQueue) -> Command {
        let current = queue.accounts.first { $0.account.name == name }?.account
        return .replaceAccount(oneIn(3) ? nil : current, with: account(name))
    }

    private mutating func account(_ name: String) -> Account {
        var endpoints = [Endpoint(transport: "memory", address: "memory://\(oneIn(3) ? "shared" : name)/\(name)")]
        if oneIn(3) { endpoints.append(Endpoint(transport: "memory", address: "memory://spare/")) }
        if oneIn(4) { endpoints.insert(Endpoint(transport: "missing", address: "missing://\(name)/"), at: 0) }
        if oneIn(12) { endpoints = [Endpoint(transport: "missing", address: "missing://\(name)/")] }
        return Account(name, endpoints: endpoints, maxConcurrentSessions: oneIn(2) ? nil : number(1...2))
    }

    // MARK: Random choices

    private mutating func accountName() -> String { oneIn(40) ? "nobody" : ["a", "b", "c"][number(0...2)] }

    private mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &random) }

    /// Returns true with a probability of 1/`times`.
    private mutating func oneIn(_ times: Int) -> Bool { number(1...times) == 1 }
}

extension TransferError {
    fileprivate static let proxyResponse = TransferError(.transient, .serverUnavailable, "The server behind the proxy is stopped.")
    fileprivate static let outage = TransferError(.unreachable, .connectionRefused, "No server responds.")
}

extension Checkpoint {
    fileprivate static let partial = Checkpoint(data: Data([1]), confirmed: 1)
}

extension SourceIdentity {
    fileprivate static let ofModel = SourceIdentity(size: 1, modificationTime: 0, inode: 0, device: 0, bootID: "")
}
