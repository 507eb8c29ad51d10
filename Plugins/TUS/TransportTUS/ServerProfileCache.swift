import HTTPSupport
import Locking
import TransferCore

/// The behaviour of endpoints that requests have shown, by address. Kept while the transport lives, and never stored.
final class ServerProfileCache: Sendable {
    /// How long a server's own description is valid.
    static let lifetime = Duration.seconds(24 * 60 * 60)
    /// The maximum number of interrupted uploads that are kept. Beyond that, all are dropped, and none of them is treated as unverified.
    private static let maximumCuts = 1_000

    /// Deviations of one endpoint that requests have shown.
    struct Quirks: Sendable {
        /// The endpoint, or a proxy in front of it, requires `PATCH` to be sent as `POST`.
        var needsMethodOverride = false
        /// The endpoint rejects content in a creation although it announces support.
        var refusesContentInCreation = false
        /// The number of consecutive `OPTIONS` requests without a response.
        var unansweredQuestions = 0
        /// The maximum number of bytes of one request, as far as known.
        var chunkLimit: Int64?

        /// Notes a limit for the bytes of one request.
        mutating func limitChunks(to limit: Int64) { chunkLimit = min(chunkLimit ?? .max, limit) }
    }

    private struct State {
        var features: [String: (value: TUSFeatures, until: ContinuousClock.Instant)] = [:]
        var quirks: [String: Quirks] = [:]
        var cuts: [String: (request: UnansweredRequest, wasFollowedByOutage: Bool)] = [:]
        /// Whether trailers reach a server, by the path to it.
        var trailers: [String: (arrive: Bool, until: ContinuousClock.Instant)] = [:]
    }

    let now: @Sendable () -> ContinuousClock.Instant
    private let state = Locked(State())
    private let questions = SingleFlight<String, TUSFeatures>()
    private let trailerTrials = SingleFlight<String, Bool>()

    init(now: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.now = now
    }

    /// Returns the server's features: cached, or asked for once on behalf of all waiting callers.
    ///
    /// - Parameter ask: Also returns how long the response is valid; nil for this call only.
    func features(
        of address: String, asking ask: @escaping @Sendable () async throws -> (TUSFeatures, lifetime: Duration?)
    ) async throws -> TUSFeatures {
        if let known = state.withLock({ $0.features[address] }), known.until > now() { return known.value }
        return try await questions.value(for: address) {
            let (features, lifetime) = try await ask()
            if let lifetime { self.note(features, of: address, for: lifetime) }
            return features
        }
    }

    func note(_ features: TUSFeatures, of address: String, for lifetime: Duration = lifetime) {
        let until = now() + lifetime
        state.withLock { $0.features[address] = (features, until) }
    }

    /// Returns whether trailers reach a server: cached, or tried once on behalf of all waiting callers.
    ///
    /// - Parameter attempt: Nil for an unknown result, which counts as false this time.
    func trailersArrive(by way: String, trying attempt: @escaping @Sendable () async throws -> Bool?) async throws -> Bool {
        if let known = state.withLock({ $0.trailers[way] }), known.until > now() { return known.arrive }
        return try await trailerTrials.value(for: way) {
            guard let arrive = try await attempt() else { return false }
            let until = self.now() + Self.lifetime
            self.state.withLock { $0.trailers[way] = (arrive, until) }
            return arrive
        }
    }

    func quirks(of address: String) -> Quirks {
        state.withLock { $0.quirks[address] ?? Quirks() }
    }

    func learn(of address: String, _ change: (inout Quirks) -> Void) {
        state.withLock { change(&$0.quirks[address, default: Quirks()]) }
    }

    /// Remembers how an upload was interrupted, for when it resumes.
    func note(_ cut: UnansweredRequest, of upload: String) {
        state.withLock { state in
            if state.cuts.count >= Self.maximumCuts { state.cuts.removeAll() }
            state.cuts[upload] = (cut, wasFollowedByOutage: false)
        }
    }

    /// Notes that the server of an upload refused the connection when it was asked for the offset.
    func noteOutage(of upload: String) {
        state.withLock { $0.cuts[upload]?.wasFollowedByOutage = true }
    }

    /// The last request of an upload, if it was interrupted while it sent bytes, and the server then refused connections.
    func requestBeforeOutage(of upload: String) -> UnansweredRequest? {
        state.withLock { state in
            state.cuts[upload].flatMap { $0.wasFollowedByOutage && $0.request.taken > 0 ? $0.request : nil }
        }
    }

    /// Forgets the interruption of an upload that resumes.
    func forgetCut(of upload: String) {
        state.withLock { _ = $0.cuts.removeValue(forKey: upload) }
    }
}
