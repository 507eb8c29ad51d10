package import TransferCore

/// The choice of the endpoint for a file's next attempt. Depends only on the arguments of the initializer.
package enum EndpointChoice: Equatable {
    case use(Endpoint)
    /// This endpoint keeps bytes of the file, and is unavailable. The file waits for the endpoint until this uptime.
    case wait(Endpoint, until: Duration)
    /// No endpoint is available.
    case none

    /// The longest time for which a file waits for an endpoint: 100 years. Stored accounts are not validated, and a longer delay could overflow a sum
    /// of times.
    private static let longestFallbackDelay = Duration.seconds(100 * 366 * 24 * 3_600)

    /// - Parameters:
    ///   - kept: The number of bytes of the file that each endpoint keeps, by the endpoint's address.
    ///   - avoided: Endpoints that were recently unreachable for a file of the session.
    ///   - preferred: The app's choice. Takes precedence over the account's order, but neither over bytes that an endpoint keeps nor over
    ///     recent failures.
    package init(
        _ availability: EndpointAvailability, kept: [String: Int64], history: FileHistory, avoided: Set<Endpoint> = [],
        preferred: Endpoint? = nil, uptime: Duration, routes: RouteGap = RouteGap()
    ) {
        guard !availability.available.isEmpty else {
            self = .none
            return
        }
        let isUntried = { (endpoint: Endpoint) in history.failedEndpoints[endpoint] == nil && !history.exhausted.contains(endpoint) }
        let untried = availability.available.filter(isUntried)
        let candidates = untried.isEmpty ? availability.available : untried
        let endpointWithBytes = availability.registered
            .filter { kept[$0.address, default: 0] > 0 && isUntried($0) }
            .max { (left, right) in
                if history.lastEndpoint == left || history.lastEndpoint == right { return history.lastEndpoint == right }
                return kept[left.address, default: 0] < kept[right.address, default: 0]
            }
        if let endpointWithBytes {
            let fallbackDelay = min(max(.zero, availability.account.fallbackAfter), Self.longestFallbackDelay)
            if availability.available.contains(endpointWithBytes) {
                self = .use(endpointWithBytes)
                return
            }
            if let until = availability.busyUntil[endpointWithBytes], until > uptime {
                self = .wait(endpointWithBytes, until: until)
                return
            }
            // The queue makes no attempts at an unavailable endpoint, so there are no failed attempts to count. Only the elapsed time
            // decides.
            guard let since = routes.start(ofOutageSince: history.outages[endpointWithBytes]?.since ?? uptime, at: endpointWithBytes) else {
                // Without a route, no other server can be reached either.
                self = .wait(endpointWithBytes, until: uptime + fallbackDelay)
                return
            }
            let fallbackTime = since + fallbackDelay
            if uptime < fallbackTime {
                self = .wait(endpointWithBytes, until: fallbackTime)
                return
            }
        }
        let reachable = candidates.filter { !avoided.contains($0) }
        guard let first = reachable.first(where: { $0 == preferred }) ?? reachable.first ?? candidates.first else {
            self = .none
            return
        }
        self = .use(first)
    }
}
