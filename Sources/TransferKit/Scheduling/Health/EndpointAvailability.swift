package import TransferCore

/// The endpoints of an account, and which of them a run may currently use.
package struct EndpointAvailability: Sendable, Equatable {
    package var account: Account
    /// The account's endpoints whose transport is registered in this process, in order of preference.
    package var registered: [Endpoint]
    /// The registered endpoints that the run may contact now.
    package var available: [Endpoint]
    /// The registered endpoints whose host asked clients to back off, and the uptime at which the requested delay ends.
    package var busyUntil: [Endpoint: Duration] = [:]
    /// The endpoints that failed too often and whose pause has ended. One run must probe such an endpoint before other runs may use it.
    package var needingProbe: Set<Endpoint> = []
    /// The last failure at one of the endpoints, if any.
    package var failure: TransferError?

    package init(
        account: Account, registered: [Endpoint], available: [Endpoint], busyUntil: [Endpoint: Duration] = [:],
        needingProbe: Set<Endpoint> = [], failure: TransferError? = nil
    ) {
        self.needingProbe = needingProbe
        self.account = account
        self.registered = registered
        self.available = available
        self.busyUntil = busyUntil
        self.failure = failure
    }

    /// The same endpoints, reordered by the account's first rule that fits a file of this direction and size.
    func preferring(_ direction: TransferDirection, size: Int64?) -> EndpointAvailability {
        guard let rule = account.rules.first(where: { $0.fits(direction, size: size) }) else { return self }
        var copy = self
        copy.registered = rule.sorted(registered)
        copy.available = rule.sorted(available)
        return copy
    }

    func keeping(_ isKept: (Endpoint) -> Bool) -> EndpointAvailability {
        var copy = self
        copy.registered = registered.filter(isKept)
        copy.available = available.filter(isKept)
        return copy
    }

    /// Makes an endpoint unavailable, because another run is probing it.
    mutating func remove(_ endpoint: Endpoint) {
        available.removeAll { $0 == endpoint }
    }

    /// The same endpoints, starting with the endpoints that satisfy the predicate. Both groups keep their order.
    func sorted(first isFirst: (Endpoint) -> Bool) -> EndpointAvailability {
        var copy = self
        copy.registered = registered.filter(isFirst) + registered.filter { !isFirst($0) }
        copy.available = available.filter(isFirst) + available.filter { !isFirst($0) }
        return copy
    }

    /// The error to report if no endpoint can be used.
    var error: TransferError {
        registered.isEmpty
            ? TransferError(
                .unsupported, .unsupported,
                "No transport is registered for the endpoints of the account \"\(account.name)\". Register one when you create the queue.")
            : TransferError(
                .unreachable, .connectionRefused,
                "No endpoint of the account \"\(account.name)\" can be used now."
                    + (failure.map { " \($0.message)" } ?? ""), cause: failure?.cause)
    }
}
