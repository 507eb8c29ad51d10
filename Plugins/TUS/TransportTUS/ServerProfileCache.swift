import HTTPSupport
import Locking
import TransferCore

/// Caches the features, quirks and interrupted uploads of servers in memory, for the lifetime of the transport.
final class ServerProfileCache: Sendable {
    /// How long the cache keeps a server's reported features, the server's version of the IETF protocol, and the result of a trial with
    /// trailers.
    static let lifetime = Duration.seconds(24 * 60 * 60)
    /// The maximum number of interrupted uploads in the cache. At the limit, the cache drops all of them, and they no longer count as
    /// interrupted.
    private static let maximumInterruptedRequests = 1_000
    /// The maximum number of addresses for which the cache keeps one kind of information. The addresses are endpoint addresses and creation
    /// URLs. At the limit, the cache drops this information for all addresses, and the transport obtains it again.
    private static let maximumAddresses = 1_000

    /// The limits of one endpoint, and its deviations from the protocol, as observed by the transport.
    struct Quirks: Sendable {
        /// The endpoint, or a proxy in front of it, requires `PATCH` to be sent as `POST`.
        var needsMethodOverride = false
        /// The endpoint rejects content in a creation although it announces support.
        var refusesContentInCreation = false
        /// The number of consecutive `OPTIONS` requests without a response. It decreases by one each time the transport omits the request.
        var unansweredOptionsRequests = 0
        /// A proxy in front of the endpoint breaks requests with interim responses over HTTP/2, so requests use HTTP/1.1.
        var breaksInterimResponses = false
        /// The server created an upload without content, and sent no interim response that a proxy could break.
        var sendsNoInterimResponses = false
        /// The maximum number of bytes of one request; nil if no limit is known.
        var chunkLimit: Int64?

        mutating func limitChunks(to limit: Int64) { chunkLimit = min(chunkLimit ?? .max, limit) }
    }

    private struct State {
        var features: [String: (value: TUSFeatures, until: ContinuousClock.Instant)] = [:]
        var quirks: [String: Quirks] = [:]
        var dialects: [String: (value: KnownDialect, until: ContinuousClock.Instant)] = [:]
        var interruptedRequests: [String: (request: UnansweredRequest, wasFollowedByOutage: Bool)] = [:]
        /// Whether trailers arrive at a server, by the endpoint's address, the address for creating uploads, and the origin of the upload.
        var trailers: [String: (arrive: Bool, until: ContinuousClock.Instant)] = [:]
    }

    let now: @Sendable () -> ContinuousClock.Instant
    private let state = Locked(State())
    private let featureRequests = SingleFlight<String, TUSFeatures>()
    private let trailerTrials = SingleFlight<String, Bool>()

    init(now: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.now = now
    }

    /// Returns the server's features from the cache. If they are missing or expired, sends one request for all waiting callers.
    ///
    /// - Parameter request: Requests the features. Also returns how long they are valid; nil not to cache them.
    func features(
        of address: String, requesting request: @escaping @Sendable () async throws -> (TUSFeatures, lifetime: Duration?)
    ) async throws -> TUSFeatures {
        if let known = state.withLock({ $0.features[address] }), known.until > now() { return known.value }
        return try await featureRequests.value(for: address) {
            let (features, lifetime) = try await request()
            if let lifetime { self.store(features, of: address, for: lifetime) }
            return features
        }
    }

    /// Stores a server's features, by default for a day.
    func store(_ features: TUSFeatures, of address: String, for lifetime: Duration = lifetime) {
        let until = now() + lifetime
        state.withLock { state in
            if state.features.count >= Self.maximumAddresses { state.features.removeAll() }
            state.features[address] = (features, until)
        }
    }

    /// Removes the features of a server that may no longer speak tus.
    func forgetFeatures(of address: String) { state.withLock { _ = $0.features.removeValue(forKey: address) } }

    /// Returns from the cache whether trailers arrive at a server. If this is unknown, makes one trial for all waiting callers.
    ///
    /// - Parameter trial: Makes the trial. Returns nil if the result is inconclusive; this call then returns false, and the next call makes
    ///   another trial.
    func trailersArrive(by route: String, trying trial: @escaping @Sendable () async throws -> Bool?) async throws -> Bool {
        if let known = state.withLock({ $0.trailers[route] }), known.until > now() { return known.arrive }
        return try await trailerTrials.value(for: route) {
            guard let arrive = try await trial() else { return false }
            let until = self.now() + Self.lifetime
            self.state.withLock { state in
                if state.trailers.count >= Self.maximumAddresses { state.trailers.removeAll() }
                state.trailers[route] = (arrive, until)
            }
            return arrive
        }
    }

    /// The endpoint's version of the IETF protocol; nil if it is unknown.
    func dialect(of address: String) -> KnownDialect? {
        state.withLock { $0.dialects[address] }.flatMap { $0.until > now() ? $0.value : nil }
    }

    /// Stores an endpoint's version of the IETF protocol for a day.
    func store(_ dialect: KnownDialect, of address: String) {
        let until = now() + Self.lifetime
        state.withLock { state in
            if state.dialects.count >= Self.maximumAddresses { state.dialects.removeAll() }
            state.dialects[address] = (dialect, until)
        }
    }

    /// Removes the version of the IETF protocol of a server that now speaks tus instead.
    func forgetDialect(of address: String) { state.withLock { _ = $0.dialects.removeValue(forKey: address) } }

    func quirks(of address: String) -> Quirks {
        state.withLock { $0.quirks[address] ?? Quirks() }
    }

    func learn(of address: String, _ change: (inout Quirks) -> Void) {
        state.withLock { state in
            if state.quirks.count >= Self.maximumAddresses, state.quirks[address] == nil { state.quirks.removeAll() }
            change(&state.quirks[address, default: Quirks()])
        }
    }

    /// Stores the interrupted request of an upload until the upload resumes.
    func record(_ request: UnansweredRequest, of upload: String) {
        state.withLock { state in
            if state.interruptedRequests.count >= Self.maximumInterruptedRequests { state.interruptedRequests.removeAll() }
            state.interruptedRequests[upload] = (request, wasFollowedByOutage: false)
        }
    }

    /// Records that the server refused a connection after the upload's request was interrupted.
    func recordOutage(of upload: String) {
        state.withLock { $0.interruptedRequests[upload]?.wasFollowedByOutage = true }
    }

    /// Returns the interrupted request of an upload if the network accepted some of its bytes and the server refused connections afterwards;
    /// otherwise nil.
    func requestBeforeOutage(of upload: String) -> UnansweredRequest? {
        state.withLock { state in
            state.interruptedRequests[upload].flatMap { $0.wasFollowedByOutage && $0.request.accepted > 0 ? $0.request : nil }
        }
    }

    /// Removes the interrupted request of an upload that resumes.
    func forgetInterruptedRequest(of upload: String) {
        state.withLock { _ = $0.interruptedRequests.removeValue(forKey: upload) }
    }
}
