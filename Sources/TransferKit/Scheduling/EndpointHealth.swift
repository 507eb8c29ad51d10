import Foundation
import TransferCore

/// Which endpoints may be asked at present: a circuit breaker for each, and the hosts that asked to be left alone. Belongs to the process.
package struct EndpointHealth: Sendable, Equatable {
    /// Failures in a row after which an endpoint is left alone.
    static let failureLimit = 5
    static let firstPause = Duration.seconds(30)
    static let longestPause = Duration.seconds(600)

    /// One address of one transport.
    struct Key: Hashable, Sendable {
        let transport: TransportID
        let address: String

        init(_ endpoint: Endpoint) {
            transport = endpoint.transport
            address = endpoint.address
        }
    }

    struct Breaker: Sendable, Equatable {
        var failures = 0
        /// Of the last failure.
        var error: TransferError
        /// Nil while it is closed.
        var openUntil: Duration?
        var pause = EndpointHealth.firstPause
        /// The run that tries whether the endpoint works again.
        var probe: UInt64?
    }

    /// Whether an endpoint may be asked.
    enum Availability: Equatable {
        case available
        /// Nil if it depends on the probe of another run.
        case unavailable(until: Duration?)
    }

    private var breakers: [Key: Breaker] = [:]
    private var busyHosts: [String: Duration] = [:]

    /// An attempt failed before any byte moved.
    ///
    /// - Returns: Until when the endpoint is left alone because of it; nil if it is not.
    @discardableResult
    mutating func failed(_ endpoint: Endpoint, _ error: TransferError, run: UInt64, at uptime: Duration) -> Duration? {
        var breaker = breakers[Key(endpoint)] ?? Breaker(error: error)
        breaker.error = error
        if let openUntil = breaker.openUntil {
            // A run that began before the endpoint was given up says nothing new.
            guard openUntil <= uptime else { return nil }
            breaker.pause = min(breaker.pause * 2, Self.longestPause)
        } else {
            breaker.failures += 1
            guard breaker.failures >= Self.failureLimit else {
                breakers[Key(endpoint)] = breaker
                return nil
            }
        }
        let until = uptime + breaker.pause
        breaker.openUntil = until
        breaker.probe = nil
        breakers[Key(endpoint)] = breaker
        return until
    }

    /// An attempt moved bytes.
    mutating func works(_ endpoint: Endpoint) {
        breakers[Key(endpoint)] = nil
    }

    /// The server wants its host to be left alone.
    mutating func busy(_ endpoint: Endpoint, for duration: Duration, at uptime: Duration) {
        guard let host = endpoint.host else { return }
        let until = uptime + min(duration, RetryPolicy.longestRetryAfter)
        busyHosts = busyHosts.filter { $0.value > uptime }
        busyHosts[host] = max(busyHosts[host] ?? .zero, until)
    }

    /// A person wants the hosts of these endpoints to be asked now, whatever they asked for.
    mutating func askAgain(_ endpoints: [Endpoint]) {
        guard !busyHosts.isEmpty else { return }
        for host in endpoints.compactMap(\.host) { busyHosts[host] = nil }
    }

    /// A run begins that may ask this endpoint; if it was given up, this run tries whether it works again.
    mutating func begin(_ endpoint: Endpoint, run: UInt64, at uptime: Duration) {
        guard let openUntil = breakers[Key(endpoint)]?.openUntil, openUntil <= uptime else { return }
        breakers[Key(endpoint)]?.probe = run
    }

    /// A run's attempts go to this endpoint from now on, so it tries no other one.
    mutating func uses(_ endpoint: Endpoint, run: UInt64, at uptime: Duration) {
        for (key, breaker) in breakers where breaker.probe == run && key != Key(endpoint) { breakers[key]?.probe = nil }
        if breakers[Key(endpoint)]?.probe == nil { begin(endpoint, run: run, at: uptime) }
    }

    /// Whether attempts there failed since the last one that moved bytes.
    func hasFailures(at endpoint: Endpoint) -> Bool {
        breakers[Key(endpoint)] != nil
    }

    /// The last failure at the first of these endpoints that has one.
    func failure(at endpoints: [Endpoint]) -> TransferError? {
        endpoints.lazy.compactMap { breakers[Key($0)]?.error }.first
    }

    /// A run is over.
    mutating func end(run: UInt64) {
        for (key, breaker) in breakers where breaker.probe == run { breakers[key]?.probe = nil }
    }

    /// - Parameter run: The run that asks; nil for one that is yet to begin.
    func availability(of endpoint: Endpoint, run: UInt64?, at uptime: Duration) -> Availability {
        var until: Duration?
        if !busyHosts.isEmpty, let host = endpoint.host, let busy = busyHosts[host], busy > uptime { until = busy }
        if let breaker = breakers[Key(endpoint)], let openUntil = breaker.openUntil {
            if openUntil > uptime {
                until = max(until ?? .zero, openUntil)
            } else if let probe = breaker.probe, probe != run, until == nil {
                return .unavailable(until: nil)
            }
        }
        return until.map { .unavailable(until: $0) } ?? .available
    }

    /// Those whose hosts want to be left alone, and until when.
    func busy(_ endpoints: [Endpoint], at uptime: Duration) -> [Endpoint: Duration] {
        guard !busyHosts.isEmpty else { return [:] }
        let found = endpoints.compactMap { endpoint in
            endpoint.host.flatMap { busyHosts[$0] }.flatMap { $0 > uptime ? (endpoint, $0) : nil }
        }
        return Dictionary(found, uniquingKeysWith: max)
    }
}

extension Endpoint {
    /// The host that its address names.
    var host: String? { URLComponents(string: address)?.host }
}
