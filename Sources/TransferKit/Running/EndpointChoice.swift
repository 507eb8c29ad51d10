package import TransferCore

/// Which of an account's endpoints a run may use at present.
package struct EndpointAvailability: Sendable, Equatable {
    /// The account as it is now.
    package var account: Account
    /// Of its endpoints, those that this process has a transport for, in order of preference.
    package var registered: [Endpoint]
    /// Of these, those that may be asked now.
    package var available: [Endpoint]
    /// Those of the others whose host asked to be left alone, and until when, as uptime.
    package var busyUntil: [Endpoint: Duration] = [:]
    /// Those that failed too often, and that one run alone may ask.
    package var toBeProbed: Set<Endpoint> = []
    /// The last failure at one of them, if any.
    package var failure: TransferError?

    package init(
        account: Account, registered: [Endpoint], available: [Endpoint], busyUntil: [Endpoint: Duration] = [:],
        toBeProbed: Set<Endpoint> = [], failure: TransferError? = nil
    ) {
        self.toBeProbed = toBeProbed
        self.account = account
        self.registered = registered
        self.available = available
        self.busyUntil = busyUntil
        self.failure = failure
    }

    /// All endpoints that there are transports for.
    package init(_ account: Account, transports: Set<TransportID>) {
        let registered = account.endpoints.filter { transports.contains($0.transport) }
        self.init(account: account, registered: registered, available: registered)
    }

    /// The same with those first that the account's rules prefer for a file.
    func preferring(_ direction: TransferDirection, size: Int64?) -> EndpointAvailability {
        guard let rule = account.rules.first(where: { $0.fits(direction, size: size) }) else { return self }
        var copy = self
        copy.registered = rule.sorted(registered)
        copy.available = rule.sorted(available)
        return copy
    }

    /// The same without all others.
    func keeping(_ isKept: (Endpoint) -> Bool) -> EndpointAvailability {
        var copy = self
        copy.registered = registered.filter(isKept)
        copy.available = available.filter(isKept)
        return copy
    }

    /// Another run probes an endpoint.
    mutating func leave(_ endpoint: Endpoint) {
        available.removeAll { $0 == endpoint }
    }

    /// The same with those first, in their order, that are so.
    func putting(first isFirst: (Endpoint) -> Bool) -> EndpointAvailability {
        var copy = self
        copy.registered = registered.filter(isFirst) + registered.filter { !isFirst($0) }
        copy.available = available.filter(isFirst) + available.filter { !isFirst($0) }
        return copy
    }

    /// Why no endpoint can be used.
    var error: TransferError {
        registered.isEmpty
            ? TransferError(.unsupported, .unsupported, "No transport of this process serves the account \"\(account.name)\".")
            : TransferError(
                .unreachable, .connectionRefused,
                "Each endpoint of the account \"\(account.name)\" failed too often, or asked to be left alone."
                    + (failure.map { " \($0.message)" } ?? ""), cause: failure?.cause)
    }
}

/// Decides which endpoint the next attempt for a file uses. Pure.
package enum EndpointChoice: Equatable {
    case use(Endpoint)
    /// The file has bytes at an endpoint that can't be used until then, as uptime, at the earliest.
    case wait(Endpoint, until: Duration)
    /// No endpoint may be asked.
    case none

    /// - Parameters:
    ///   - confirmed: What checkpoints vouch for, by the endpoint's address.
    ///   - avoided: Endpoints that the session's other files could not reach just now.
    ///   - preferred: The app's choice: goes before the account's order, not before what is known of the endpoints.
    init(
        _ availability: EndpointAvailability, confirmed: [String: Int64], history: FileHistory, avoided: Set<Endpoint> = [],
        preferred: Endpoint? = nil, uptime: Duration
    ) {
        guard !availability.available.isEmpty else {
            self = .none
            return
        }
        let isUntried = { (endpoint: Endpoint) in history.passedOver[endpoint] == nil && !history.exhausted.contains(endpoint) }
        let untried = availability.available.filter(isUntried)
        let candidates = untried.isEmpty ? availability.available : untried
        let bound = availability.registered
            .filter { confirmed[$0.address, default: 0] > 0 && isUntried($0) }
            .max { (left, right) in
                if history.home == left || history.home == right { return history.home == right }
                return confirmed[left.address, default: 0] < confirmed[right.address, default: 0]
            }
        if let bound {
            if availability.available.contains(bound) {
                self = .use(bound)
                return
            }
            if let until = availability.busyUntil[bound], until > uptime {
                self = .wait(bound, until: until)
                return
            }
            // The queue itself leaves the endpoint alone, so that there are no attempts to count: time alone decides.
            let since = history.outages[bound]?.since ?? uptime
            let patience = since + availability.account.fallbackAfter
            if uptime < patience {
                self = .wait(bound, until: patience)
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
