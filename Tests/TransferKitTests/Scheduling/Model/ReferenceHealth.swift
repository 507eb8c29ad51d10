import Foundation
import TransferCore
import TransferKit

/// Which endpoints and hosts are to be left alone; known to the process only.
struct ReferenceHealth {
    struct Breaker {
        let transport: TransportID
        let address: String
        var failures = 0
        var openFor = Duration.zero
        var openUntil: Duration?
        /// The run that tries whether it works again.
        var probe: UInt64?

        func isOf(_ endpoint: Endpoint) -> Bool { transport == endpoint.transport && address == endpoint.address }
    }

    private(set) var breakers: [Breaker] = []
    private(set) var busyUntil: [String: Duration] = [:]

    static let longestBusy = Duration.seconds(24 * 3_600)
    static let firstOpen = Duration.seconds(30)
    static let longestOpen = Duration.seconds(600)

    func isAvailable(_ endpoint: Endpoint, at now: Moment) -> Bool {
        if let until = busyUntil[host(endpoint)], until > now.uptime { return false }
        guard let breaker = breakers.first(where: { $0.isOf(endpoint) }), let until = breaker.openUntil else { return true }
        return until <= now.uptime && breaker.probe == nil
    }

    /// A person does not want to wait for as long as the servers asked for.
    mutating func askAgain(_ endpoints: [Endpoint]) {
        for endpoint in endpoints { busyUntil[host(endpoint)] = nil }
    }

    /// A run begins at this endpoint: if that was to be tried once, it is the one that tries.
    mutating func begin(_ run: UInt64, at endpoint: Endpoint, _ now: Moment) {
        guard let index = breakers.firstIndex(where: { $0.isOf(endpoint) }), let until = breakers[index].openUntil, until <= now.uptime
        else { return }
        breakers[index].probe = run
    }

    /// A run asks this endpoint: it tries no other one, and this one if nobody else does.
    mutating func uses(_ endpoint: Endpoint, _ run: UInt64, _ now: Moment) {
        for index in breakers.indices where breakers[index].probe == run && !breakers[index].isOf(endpoint) { breakers[index].probe = nil }
        if let breaker = breakers.first(where: { $0.isOf(endpoint) }), breaker.probe == nil { begin(run, at: endpoint, now) }
    }

    mutating func end(_ run: UInt64) {
        for index in breakers.indices where breakers[index].probe == run { breakers[index].probe = nil }
    }

    mutating func works(_ endpoint: Endpoint) {
        breakers.removeAll { $0.isOf(endpoint) }
    }

    mutating func failed(_ endpoint: Endpoint, at now: Moment) {
        if !breakers.contains(where: { $0.isOf(endpoint) }) {
            breakers.append(Breaker(transport: endpoint.transport, address: endpoint.address))
        }
        guard let index = breakers.firstIndex(where: { $0.isOf(endpoint) }) else { return }
        if let until = breakers[index].openUntil {
            // A run that began before says nothing new.
            guard until <= now.uptime else { return }
            breakers[index].openFor = min(breakers[index].openFor * 2, Self.longestOpen)
            breakers[index].probe = nil
        } else {
            breakers[index].failures += 1
            guard breakers[index].failures >= 5 else { return }
            breakers[index].openFor = Self.firstOpen
        }
        breakers[index].openUntil = now.uptime + breakers[index].openFor
    }

    mutating func busy(_ endpoint: Endpoint, for duration: Duration, at now: Moment) {
        busyUntil[host(endpoint)] = max(busyUntil[host(endpoint)] ?? .zero, now.uptime + min(duration, Self.longestBusy))
    }

    private func host(_ endpoint: Endpoint) -> String {
        URLComponents(string: endpoint.address)?.host ?? endpoint.address
    }
}
