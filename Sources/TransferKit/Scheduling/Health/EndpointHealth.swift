import Foundation
import TransferCore

/// The availability of endpoints: a circuit breaker for each endpoint, and the hosts that asked clients to back off. Not stored.
package struct EndpointHealth: Sendable, Equatable {
    /// The number of consecutive failures after which an endpoint becomes unavailable.
    static let failureLimit = 5
    /// The first pause of an endpoint that failed too often. Each failed probe doubles the pause, up to ``longestPause``, unless the
    /// failure was an outage.
    static let firstPause = Duration.seconds(30)
    static let longestPause = Duration.seconds(600)
    /// The minimum pause of an endpoint that failed too often, if its last failure was an outage. Short, because attempts put no load on an
    /// unreachable server.
    static let outagePause = Duration.seconds(10)
    /// How long a new run reserves the probe of an endpoint. If the run has not begun its attempt by then, another run may probe the
    /// endpoint.
    static let probeGrace = Duration.seconds(5)
    /// The maximum time for which a probe keeps other runs from using the endpoint.
    static let longestProbe = Duration.seconds(30)

    /// The transport and the address of an endpoint. Endpoints with equal keys share their health.
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
        var error: TransferError
        /// The uptime from which the endpoint may be probed; nil while the breaker is closed and all runs may use the endpoint.
        var openUntil: Duration?
        var pause = EndpointHealth.firstPause
        /// The run that currently probes the endpoint; nil if no run does.
        var probe: Probe?
    }

    /// A run that checks whether an endpoint works again. Until the probe ends, no other run begins an attempt at the endpoint.
    struct Probe: Sendable, Equatable {
        var run: UInt64
        /// The uptime at which the run began its attempts at the endpoint; nil before the first attempt.
        var startedAt: Duration?
        var endsAt: Duration
    }

    enum Availability: Equatable {
        case available
        /// Unavailable until an uptime.
        case unavailable(until: Duration)
    }

    private var breakers: [Key: Breaker] = [:]
    /// The hosts that asked clients to back off, and the uptime at which each requested delay ends.
    private var busyHosts: [String: Duration] = [:]
    /// The endpoints that each run probes.
    private var probedByRun: [UInt64: Set<Key>] = [:]

    /// Records a failure of an endpoint; see ``RunEvent/Content/endpointFailed(_:_:)``.
    ///
    /// - Returns: The uptime until which the endpoint is unavailable because of the failure; nil if the failure does not change the
    ///   endpoint's availability.
    @discardableResult
    mutating func recordFailure(_ endpoint: Endpoint, _ error: TransferError, run: UInt64, at uptime: Duration) -> Duration? {
        var breaker = breakers[Key(endpoint)] ?? Breaker(error: error)
        breaker.error = error
        let isOutage = RecoveryDecision.isOutage(error)
        if let openUntil = breaker.openUntil {
            // While the endpoint is unavailable, only an attempt that began earlier can fail. Such a failure changes nothing.
            guard openUntil <= uptime else { return nil }
            if !isOutage { breaker.pause = min(breaker.pause * 2, Self.longestPause) }
        } else {
            breaker.failures += 1
            guard breaker.failures >= Self.failureLimit else {
                breakers[Key(endpoint)] = breaker
                return nil
            }
        }
        // After an outage, the pause is at least as long as the probe took. Slow probes therefore occupy a slot for at most half of the
        // time.
        let duration = breaker.probe.flatMap { $0.run == run ? $0.startedAt : nil }.map { uptime - $0 } ?? .zero
        let until = uptime + (isOutage ? max(Self.outagePause, duration) : breaker.pause)
        breaker.openUntil = until
        breakers[Key(endpoint)] = breaker
        setProbe(nil, of: Key(endpoint))
        return until
    }

    mutating func recordSuccess(_ endpoint: Endpoint) {
        setProbe(nil, of: Key(endpoint))
        breakers[Key(endpoint)] = nil
    }

    /// Records that a server asked all clients of its host to back off for a time, which is limited to ``RetryPolicy/longestRetryAfter``.
    mutating func recordBusy(_ endpoint: Endpoint, for duration: Duration, at uptime: Duration) {
        guard let host = endpoint.host else { return }
        let until = uptime + min(duration, RetryPolicy.longestRetryAfter)
        busyHosts = busyHosts.filter { $0.value > uptime }
        busyHosts[host] = max(busyHosts[host] ?? .zero, until)
    }

    /// Records the start of a run that may use this endpoint. If the endpoint must be probed, reserves the probe for this run.
    mutating func begin(_ endpoint: Endpoint, run: UInt64, at uptime: Duration) {
        guard mustBeProbed(endpoint, at: uptime) else { return }
        setProbe(Probe(run: run, endsAt: uptime + Self.probeGrace), of: Key(endpoint))
    }

    /// Requests permission for a run to contact an endpoint. If the endpoint failed too often, the run's attempt there is a probe.
    ///
    /// - Returns: Whether the run may contact the endpoint. False while the endpoint is unavailable, or while another run probes it.
    mutating func probe(_ endpoint: Endpoint, run: UInt64, at uptime: Duration) -> Bool {
        guard availability(of: endpoint, run: run, at: uptime) == .available else { return false }
        guard let breaker = breakers[Key(endpoint)], breaker.openUntil != nil else { return true }
        // All attempts of a run count as one probe.
        if let probe = breaker.probe, probe.run == run, probe.startedAt != nil, probe.endsAt > uptime { return true }
        setProbe(Probe(run: run, startedAt: uptime, endsAt: uptime + Self.longestProbe), of: Key(endpoint))
        return true
    }

    /// Records that the next attempts of a run use this endpoint. Ends the run's probes of other endpoints.
    mutating func recordUse(of endpoint: Endpoint, run: UInt64) {
        for key in probedByRun[run] ?? [] where key != Key(endpoint) { setProbe(nil, of: key) }
    }

    /// Allows immediate probes of unavailable endpoints, after an action by the app or the user, even if their servers asked clients to
    /// back off.
    mutating func retry(_ endpoints: [Endpoint], at uptime: Duration) {
        for endpoint in endpoints {
            if let host = endpoint.host, let until = busyHosts.removeValue(forKey: host), until > uptime {
                let breaker = Breaker(failures: Self.failureLimit, error: Self.backOffRequest(of: host))
                breakers[Key(endpoint), default: breaker].openUntil = uptime
            }
            retry(Key(endpoint), at: uptime)
        }
    }

    /// Allows immediate probes of all endpoints that failed too often, because the network changed.
    mutating func retryAll(at uptime: Duration) {
        for key in breakers.keys { retry(key, at: uptime) }
    }

    /// Allows immediate probes of the endpoints whose last failure was an outage, because this machine has a new route.
    mutating func retryOutages(at uptime: Duration) {
        for (key, breaker) in breakers where RecoveryDecision.isOutage(breaker.error) { retry(key, at: uptime) }
    }

    /// Whether at least one of the endpoints has failures, and the last failure of each such endpoint was an outage.
    func hasOnlyOutages(at endpoints: [Endpoint]) -> Bool {
        let errors = endpoints.compactMap { breakers[Key($0)]?.error }
        return !errors.isEmpty && errors.allSatisfy(RecoveryDecision.isOutage)
    }

    private mutating func retry(_ key: Key, at uptime: Duration) {
        guard let openUntil = breakers[key]?.openUntil else { return }
        breakers[key]?.openUntil = min(openUntil, uptime)
        setProbe(nil, of: key)
    }

    /// Whether an endpoint's breaker is open and its pause has ended, so that one run must probe the endpoint.
    func mustBeProbed(_ endpoint: Endpoint, at uptime: Duration) -> Bool {
        breakers[Key(endpoint)]?.openUntil.map { $0 <= uptime } ?? false
    }

    /// Whether an endpoint's breaker is open. The breaker closes when the endpoint works.
    func hasOpenBreaker(_ endpoint: Endpoint) -> Bool { breakers[Key(endpoint)]?.openUntil != nil }

    func hasFailures(at endpoint: Endpoint) -> Bool {
        breakers[Key(endpoint)] != nil
    }

    /// The last failure of the first endpoint in the list that has failures. If no endpoint has failures, an error for the first host that
    /// asked clients to back off. Nil if no endpoint has failures and no host sent such a request.
    func failure(at endpoints: [Endpoint], at uptime: Duration) -> TransferError? {
        if let error = endpoints.lazy.compactMap({ breakers[Key($0)]?.error }).first { return error }
        guard !busyHosts.isEmpty else { return nil }
        return endpoints.lazy.compactMap(\.host).first { busyHosts[$0].map { $0 > uptime } ?? false }.map(Self.backOffRequest)
    }

    private static func backOffRequest(of host: String) -> TransferError {
        TransferError(.transient, .serverError, "\(host) asked clients to back off.")
    }

    func endpointsProbed(by run: UInt64) -> Set<Key> { probedByRun[run] ?? [] }

    private mutating func setProbe(_ probe: Probe?, of key: Key) {
        guard breakers[key] != nil else { return }
        if let run = breakers[key]?.probe?.run {
            probedByRun[run]?.remove(key)
            if probedByRun[run]?.isEmpty == true { probedByRun[run] = nil }
        }
        breakers[key]?.probe = probe
        if let run = probe?.run { probedByRun[run, default: []].insert(key) }
    }

    mutating func end(run: UInt64) {
        for key in probedByRun[run] ?? [] { setProbe(nil, of: key) }
    }

    /// Whether a run may use an endpoint.
    ///
    /// - Parameter run: The run; nil for a run that has not begun.
    func availability(of endpoint: Endpoint, run: UInt64?, at uptime: Duration) -> Availability {
        var until: Duration?
        if !busyHosts.isEmpty, let host = endpoint.host, let busy = busyHosts[host], busy > uptime { until = busy }
        if let breaker = breakers[Key(endpoint)], let openUntil = breaker.openUntil {
            if openUntil > uptime {
                until = max(until ?? .zero, openUntil)
            } else if let probe = breaker.probe, probe.run != run, probe.endsAt > uptime {
                until = max(until ?? .zero, probe.endsAt)
            }
        }
        return until.map { .unavailable(until: $0) } ?? .available
    }

    /// The endpoints whose hosts asked clients to back off, and the uptime at which the requested delay ends.
    func busyUntil(_ endpoints: [Endpoint], at uptime: Duration) -> [Endpoint: Duration] {
        guard !busyHosts.isEmpty else { return [:] }
        let found = endpoints.compactMap { endpoint in
            endpoint.host.flatMap { busyHosts[$0] }.flatMap { $0 > uptime ? (endpoint, $0) : nil }
        }
        return Dictionary(found, uniquingKeysWith: max)
    }
}

extension Endpoint {
    /// The host in the endpoint's address; nil if the address has no host.
    var host: String? { URLComponents(string: address)?.host }
}
