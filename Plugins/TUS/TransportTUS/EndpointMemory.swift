import HTTPSupport
import Locking
import TransferCore

/// What was learned of endpoints, by their address: kept while the transport lives, and never stored.
final class EndpointMemory: Sendable {
    /// How long what a server said of itself is taken for true.
    static let lifetime = Duration.seconds(24 * 60 * 60)
    /// How many cut uploads are remembered; with more, all are forgotten, and none of these is doubted.
    private static let maximumCuts = 1_000

    /// What was found out about one endpoint by trying.
    struct Habits: Sendable {
        /// It, or what is in front of it, takes `PATCH` only under the name of `POST`.
        var needsMethodOverride = false
        /// It refuses content in a creation, although it says that it takes it.
        var refusesContentInCreation = false
        /// How often it was asked what it can do, and said nothing at all, since it last said anything.
        var unansweredQuestions = 0
        /// The most bytes that one request may bring, as far as is known.
        var chunkLimit: Int64?

        /// Takes note that one request may bring no more than this.
        mutating func limitChunks(to limit: Int64) { chunkLimit = min(chunkLimit ?? .max, limit) }
    }

    private struct State {
        var features: [String: (value: ServerFeatures, until: ContinuousClock.Instant)] = [:]
        var habits: [String: Habits] = [:]
        var cuts: [String: (request: UnansweredRequest, wasFollowedByOutage: Bool)] = [:]
        /// Whether what follows a body gets to a server, by the way to it.
        var trailers: [String: (arrive: Bool, until: ContinuousClock.Instant)] = [:]
    }

    let now: @Sendable () -> ContinuousClock.Instant
    private let state = Locked(State())
    private let questions = SingleFlight<String, ServerFeatures>()
    private let trailerTrials = SingleFlight<String, Bool>()

    init(now: @escaping @Sendable () -> ContinuousClock.Instant) {
        self.now = now
    }

    /// What the server offers: from memory, or asked, by one caller for all who wait for it.
    ///
    /// - Parameter ask: Says also how long the answer holds; nil for this once.
    func features(
        of address: String, asking ask: @escaping @Sendable () async throws -> (ServerFeatures, lifetime: Duration?)
    ) async throws -> ServerFeatures {
        if let known = state.withLock({ $0.features[address] }), known.until > now() { return known.value }
        return try await questions.value(for: address) {
            let (features, lifetime) = try await ask()
            if let lifetime { self.note(features, of: address, for: lifetime) }
            return features
        }
    }

    func note(_ features: ServerFeatures, of address: String, for lifetime: Duration = lifetime) {
        let until = now() + lifetime
        state.withLock { $0.features[address] = (features, until) }
    }

    /// Whether what follows a body gets to a server: from memory, or tried, by one caller for all who wait for it.
    ///
    /// - Parameter attempt: Nil if that remains to be seen: nobody relies on it this time.
    func trailersArrive(by way: String, trying attempt: @escaping @Sendable () async throws -> Bool?) async throws -> Bool {
        if let known = state.withLock({ $0.trailers[way] }), known.until > now() { return known.arrive }
        return try await trailerTrials.value(for: way) {
            guard let arrive = try await attempt() else { return false }
            let until = self.now() + Self.lifetime
            self.state.withLock { $0.trailers[way] = (arrive, until) }
            return arrive
        }
    }

    func habits(of address: String) -> Habits {
        state.withLock { $0.habits[address] ?? Habits() }
    }

    func learn(of address: String, _ change: (inout Habits) -> Void) {
        state.withLock { change(&$0.habits[address, default: Habits()]) }
    }

    /// Keeps how an upload was cut, for when it goes on.
    func note(_ cut: UnansweredRequest, of upload: String) {
        state.withLock { state in
            if state.cuts.count >= Self.maximumCuts { state.cuts.removeAll() }
            state.cuts[upload] = (cut, wasFollowedByOutage: false)
        }
    }

    /// Keeps that the server of an upload took no connection when it was asked for its offset.
    func noteOutage(of upload: String) {
        state.withLock { $0.cuts[upload]?.wasFollowedByOutage = true }
    }

    /// The last request of an upload, if it was cut while it brought bytes, and the server took no connection then.
    func requestBeforeOutage(of upload: String) -> UnansweredRequest? {
        state.withLock { state in
            state.cuts[upload].flatMap { $0.wasFollowedByOutage && $0.request.taken > 0 ? $0.request : nil }
        }
    }

    /// Forgets an upload's last cut, as it goes on.
    func forgetCut(of upload: String) {
        state.withLock { _ = $0.cuts.removeValue(forKey: upload) }
    }
}
