import Foundation
import TransferCore
import TransferKit

/// The endpoints and hosts that a ``ReferenceQueue`` considers unavailable. A new process knows none.
struct ReferenceHealth {
    /// The failures of one endpoint. After five failures in a row, the endpoint is unavailable for some time.
    struct Breaker {
        let transport: TransportID
        let address: String
        var failures = 0
        /// Whether the last failure was an outage.
        var isOutage = false
        /// The duration of the unavailability, unless the last failure was an outage.
        var openFor = Duration.zero
        /// The time until which the endpoint is unavailable; nil if the endpoint has not failed too often.
        var openUntil: Duration?
        /// The run that probes the endpoint, if any.
        var probe: UInt64?
        /// The time at which the probing run announced a request to the endpoint; nil before that.
        var announcedAt: Duration?
        /// The time from which another run may probe.
        var probedUntil = Duration.zero

        func matches(_ endpoint: Endpoint) -> Bool { transport == endpoint.transport && address == endpoint.address }
    }

    private(set) var breakers: [Breaker] = []
    private(set) var busyUntil: [String: Duration] = [:]

    static let longestBusy = Duration.seconds(24 * 3_600)
    static let firstOpen = Duration.seconds(30)
    static let longestOpen = Duration.seconds(600)

    func isAvailable(_ endpoint: Endpoint, to run: UInt64? = nil, at now: DualInstant) -> Bool {
        if let until = busyUntil[host(endpoint)], until > now.uptime { return false }
        guard let breaker = breakers.first(where: { $0.matches(endpoint) }), let until = breaker.openUntil else { return true }
        return until <= now.uptime && (breaker.probe == nil || breaker.probe == run || breaker.probedUntil <= now.uptime)
    }

    /// Returns the time until which an unavailable endpoint stays unavailable.
    func unavailableUntil(_ endpoint: Endpoint, at now: DualInstant) -> Duration {
        let busy = busyUntil[host(endpoint)] ?? .zero
        guard let breaker = breakers.first(where: { $0.matches(endpoint) }), let until = breaker.openUntil else { return busy }
        return max(busy, until > now.uptime ? until : breaker.probe == nil ? .zero : breaker.probedUntil)
    }

    /// Records that a run begins at an endpoint. If a probe of the endpoint is due, this run becomes the probe.
    mutating func begin(_ run: UInt64, at endpoint: Endpoint, _ now: DualInstant) {
        guard let index = breakers.firstIndex(where: { $0.matches(endpoint) }), let until = breakers[index].openUntil, until <= now.uptime
        else { return }
        breakers[index].probe = run
        breakers[index].announcedAt = nil
        breakers[index].probedUntil = now.uptime + .seconds(5)
    }

    /// Records that a run will now send a request to an endpoint that failed too often. For 30 s, no other run may send one.
    mutating func probe(_ endpoint: Endpoint, _ run: UInt64, _ now: DualInstant) {
        guard isAvailable(endpoint, to: run, at: now), let index = breakers.firstIndex(where: { $0.matches(endpoint) }),
            breakers[index].openUntil != nil
        else { return }
        let breaker = breakers[index]
        if breaker.probe == run, breaker.announcedAt != nil, breaker.probedUntil > now.uptime { return }
        breakers[index].probe = run
        breakers[index].announcedAt = now.uptime
        breakers[index].probedUntil = now.uptime + .seconds(30)
    }

    /// Records that a run uses an endpoint, so the run no longer probes other endpoints.
    mutating func uses(_ endpoint: Endpoint, _ run: UInt64) {
        for index in breakers.indices where breakers[index].probe == run && !breakers[index].matches(endpoint) {
            breakers[index].probe = nil
        }
    }

    /// Lets one run probe an endpoint immediately, because of a user's call.
    mutating func retry(_ endpoint: Endpoint, _ now: DualInstant) {
        if let until = busyUntil.removeValue(forKey: host(endpoint)), until > now.uptime {
            if !breakers.contains(where: { $0.matches(endpoint) }) {
                breakers.append(Breaker(transport: endpoint.transport, address: endpoint.address, failures: 5, openFor: Self.firstOpen))
            }
            for index in breakers.indices where breakers[index].matches(endpoint) {
                breakers[index].openUntil = now.uptime
                breakers[index].openFor = max(breakers[index].openFor, Self.firstOpen)
            }
        }
        for index in breakers.indices where breakers[index].matches(endpoint) { retry(index, now) }
    }

    mutating func retryAll(_ now: DualInstant) {
        for index in breakers.indices { retry(index, now) }
    }

    mutating func retryOutages(_ now: DualInstant) {
        for index in breakers.indices where breakers[index].isOutage { retry(index, now) }
    }

    func hasOnlyOutages(at endpoints: [Endpoint]) -> Bool {
        let found = breakers.filter { breaker in endpoints.contains { breaker.matches($0) } }
        return !found.isEmpty && found.allSatisfy(\.isOutage)
    }

    private mutating func retry(_ index: Int, _ now: DualInstant) {
        guard let until = breakers[index].openUntil else { return }
        breakers[index].openUntil = min(until, now.uptime)
        breakers[index].probe = nil
    }

    mutating func end(_ run: UInt64) {
        for index in breakers.indices where breakers[index].probe == run { breakers[index].probe = nil }
    }

    mutating func works(_ endpoint: Endpoint) {
        breakers.removeAll { $0.matches(endpoint) }
    }

    /// Records a failure of an endpoint.
    ///
    /// - Parameter isOutage: Whether the endpoint was unreachable, or a proxy responded that the server is unavailable.
    mutating func failed(_ endpoint: Endpoint, isOutage: Bool, by run: UInt64, at now: DualInstant) {
        if !breakers.contains(where: { $0.matches(endpoint) }) {
            breakers.append(Breaker(transport: endpoint.transport, address: endpoint.address))
        }
        guard let index = breakers.firstIndex(where: { $0.matches(endpoint) }) else { return }
        if let until = breakers[index].openUntil {
            // The endpoint is already unavailable, so this failure of an earlier request does not count.
            guard until <= now.uptime else { return }
            breakers[index].isOutage = isOutage
            if !isOutage { breakers[index].openFor = min(breakers[index].openFor * 2, Self.longestOpen) }
        } else {
            breakers[index].failures += 1
            breakers[index].isOutage = isOutage
            guard breakers[index].failures >= 5 else { return }
            breakers[index].openFor = Self.firstOpen
        }
        var pause = breakers[index].openFor
        if isOutage {
            pause = .seconds(10)
            if breakers[index].probe == run, let announcedAt = breakers[index].announcedAt { pause = max(pause, now.uptime - announcedAt) }
        }
        breakers[index].openUntil = now.uptime + pause
        breakers[index].probe = nil
    }

    mutating func busy(_ endpoint: Endpoint, for duration: Duration, at now: DualInstant) {
        busyUntil[host(endpoint)] = max(busyUntil[host(endpoint)] ?? .zero, now.uptime + min(duration, Self.longestBusy))
    }

    private func host(_ endpoint: Endpoint) -> String {
        URLComponents(string: endpoint.address)?.host ?? endpoint.address
    }
}
