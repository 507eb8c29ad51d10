import Foundation
import TransferCore
import TransferKit

extension ReferenceQueue {
    // MARK: Slots

    var isStrict: Bool { settings.ordering == .strict }

    /// A strict queue has one slot, regardless of its settings.
    var queueLimit: Int { isStrict ? 1 : limit }

    func limit(ofAccount number: Int) -> Int { account(number)?.account.maxConcurrentSessions ?? .max }

    var slotsInUse: Int { sessions.count { $0.holdsSlot } + leftovers.count }

    func slotsInUse(ofAccount number: Int) -> Int {
        sessions.count { $0.account == number && $0.holdsSlot } + leftovers.count { $0.account == number }
    }

    /// The account of each run that has not ended.
    var accountsOfRuns: [Int] { sessions.filter { $0.run != nil }.map(\.account) + leftovers.map(\.account) }

    var isAnythingRunning: Bool { !leftovers.isEmpty || sessions.contains { $0.run != nil } }

    // MARK: Conditions for starting

    func isEligible(_ session: ReferenceSession) -> Bool {
        session.state == .waiting && session.yieldedAt == nil && session.displacedBy == nil && session.dependency == nil
            && !isBackingOff(session) && !isTooEarly(session) && !lacksSpace(session)
    }

    func isBackingOff(_ session: ReferenceSession) -> Bool { session.retryAt.map { $0.uptime > now.uptime } ?? false }

    func isTooEarly(_ session: ReferenceSession) -> Bool { session.notBefore.map { $0 > now.date } ?? false }

    /// Whether a session waits for a date.
    var dependsOnDate: Bool {
        sessions.contains { isTooEarly($0) }
    }

    /// The date at which the queue was opened, plus the elapsed time.
    var steadyDate: Date {
        guard let opening else { return now.date }
        return opening.date + (now.uptime - opening.uptime).inSeconds
    }

    func lacksSpace(_ session: ReferenceSession) -> Bool { session.spaceAt.map { $0 > now.uptime } ?? false }

    func usableEndpoints(_ account: ReferenceAccount) -> [Endpoint] {
        account.account.endpoints.filter { settings.transports.contains($0.transport) }
    }

    func firstAvailableEndpoint(_ account: ReferenceAccount) -> Endpoint? {
        usableEndpoints(account).first { health.isAvailable($0, at: now) }
    }

    func isAble(_ session: ReferenceSession) -> Bool {
        guard let account = account(session.account) else { return false }
        return !account.isBlocked && firstAvailableEndpoint(account) != nil && isEnvironmentFit(for: session)
    }

    func isEnvironmentFit(for session: ReferenceSession) -> Bool { mayUseNetwork(session) && scarceSpace == nil }

    func mayUseNetwork(_ session: ReferenceSession) -> Bool {
        network == .unconstrained || network == .expensive && session.allowsExpensiveNetwork
    }

    /// Returns whether the order allows a session to start. A strict queue starts only the first unfinished session, and sessions with
    /// the priority `now`. While the first unfinished session waits for space, sessions that have already begun may also start.
    func isItsTurn(_ session: ReferenceSession) -> Bool {
        guard isStrict, session.startPriority != .now, let first = sessions.first(where: { $0.isUnfinished }) else { return true }
        return first.id == session.id || session.hasBegun && first.state == .waiting && lacksSpace(first)
    }

    func canStartIfSlotIsFree(_ session: ReferenceSession) -> Bool {
        mode == .running && isEligible(session) && isAble(session) && isItsTurn(session)
    }

    func isStartable(_ session: ReferenceSession) -> Bool {
        session.run == nil && canStartIfSlotIsFree(session) && slotsInUse < queueLimit
            && slotsInUse(ofAccount: session.account) < limit(ofAccount: session.account)
    }

    // MARK: Order of starting

    /// All waiting sessions, in the order in which they would start.
    var precedence: [ReferenceSession] {
        let waiting = sessions.enumerated().filter { $0.element.state == .waiting }
        return waiting.sorted { isBefore($0, $1) }.map(\.element)
    }

    private func isBefore(_ one: (offset: Int, element: ReferenceSession), _ other: (offset: Int, element: ReferenceSession)) -> Bool {
        let (priority, otherPriority) = (effectivePriority(one.element), effectivePriority(other.element))
        guard priority == otherPriority else { return priority.rawValue < otherPriority.rawValue }
        if priority == .now || priority == .next, one.element.mark != other.element.mark { return one.element.mark > other.element.mark }
        return one.offset < other.offset
    }

    private func effectivePriority(_ session: ReferenceSession) -> ReferenceSession.StartPriority {
        isStrict && session.startPriority != .now ? .none : session.startPriority
    }

    // MARK: Status

    func why(_ session: ReferenceSession) -> WaitReason? {
        guard session.shownState == .waiting, let account = account(session.account) else { return nil }
        if session.yieldedAt != nil { return .yielded }
        if let preemptor = session.displacedBy { return .displaced(by: preemptor) }
        if let retryAt = session.retryAt, isBackingOff(session) { return .retry(at: retryAt.date) }
        if let notBefore = session.notBefore, isTooEarly(session) { return .notBefore(notBefore) }
        if let dependency = session.dependency {
            return .after(dependency.session, sessions.first { $0.id == dependency.session }?.shownState ?? .failed)
        }
        if account.isBlocked { return .accountBlocked(.broken) }
        if usableEndpoints(account).isEmpty { return .transportMissing(account.account.endpoints[0].transport) }
        if firstAvailableEndpoint(account) == nil { return .endpointsUnavailable(until: now.date, nil) }
        if !mayUseNetwork(session) { return .networkConstraint(network) }
        if let scarceSpace { return .diskBelowFloor(free: scarceSpace, floor: settings.diskFloor) }
        if lacksSpace(session) { return .noSpace(.broken) }
        if mode != .running { return .queueNotRunning }
        if !isItsTurn(session), let first = sessions.first(where: { $0.isUnfinished }) { return .strictOrder(after: first.id) }
        let before = precedence.filter { $0.run == nil && canStartIfSlotIsFree($0) }.prefix { $0.id != session.id }
        if let last = before.last { return .order(after: last.id) }
        let ofAccount = sessions.filter { $0.account == session.account }
        if slotsInUse(ofAccount: session.account) >= limit(ofAccount: session.account) {
            return holder(among: ofAccount).map { .slotHeld(by: $0) } ?? .accountLimit
        }
        return holder(among: sessions).map { .slotHeld(by: $0) } ?? .queueLimit
    }

    private func holder(among sessions: [ReferenceSession]) -> SessionID? {
        sessions.first { $0.shownState == .paused && $0.holdsSlot }?.id
    }

    /// Whether the queue was started, but no session runs, and none can start just because time passes.
    var isIdle: Bool {
        mode == .running && !isAnythingRunning && !sessions.contains { canStartByTimeAlone($0) }
    }

    private func canStartByTimeAlone(_ session: ReferenceSession) -> Bool {
        guard session.state == .waiting, let account = account(session.account) else { return false }
        return session.displacedBy == nil && session.dependency == nil && isItsTurn(session)
            && (!lacksSpace(session) || session.isSpaceReleased)
            && !account.isBlocked && !usableEndpoints(account).isEmpty && isEnvironmentFit(for: session) && slotsInUse < queueLimit
            && slotsInUse(ofAccount: session.account) < limit(ofAccount: session.account)
    }
}
