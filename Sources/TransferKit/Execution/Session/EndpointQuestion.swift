import Locking
package import Logging
package import TransferCore

/// Asks the app which endpoint a session should use. Remembers the app's choice for each set of available endpoints.
///
/// Belongs to one run, so other sessions never wait for the app's choice.
package final class EndpointQuestion: Sendable {
    private let ask: @Sendable ([Endpoint]) async -> Endpoint?
    private let logger: Logger
    /// The app's choices, by the set of offered endpoints. An inner nil means that the queue chooses.
    private let choices = Locked<[Set<Endpoint>: Endpoint?]>([:])

    package init(logger: Logger, ask: @escaping @Sendable ([Endpoint]) async -> Endpoint?) {
        self.logger = logger
        self.ask = ask
    }

    /// The app's choice; nil if the app leaves the choice to the queue, or chooses an endpoint that was not offered. Returns nil without asking
    /// if there are fewer than two endpoints.
    ///
    /// - Throws: `CancellationError` if the run is interrupted before the app chooses.
    package func choice(among endpoints: [Endpoint]) async throws(CancellationError) -> Endpoint? {
        guard endpoints.count > 1 else { return nil }
        let offered = Set(endpoints)
        if let known = choices.withLock({ $0[offered] }) { return known }
        let choice = try await askApp(about: endpoints)
        let isOffered = choice.map { endpoints.contains($0) } ?? true
        if !isOffered, let choice {
            logger.warning(
                "The delegate chose an endpoint that was not offered. The queue uses its own choice.",
                metadata: ["endpoint": "\(choice.location)"])
        }
        let chosen = isOffered ? choice : nil
        choices.withLock { $0[offered] = .some(chosen) }
        return chosen
    }

    /// Waits for the app's choice, or until the run is interrupted. An app that never chooses must not prevent the run from ending. Returns
    /// nil if the app leaves the choice to the queue.
    private func askApp(about endpoints: [Endpoint]) async throws(CancellationError) -> Endpoint? {
        let (choices, continuation) = AsyncStream.makeStream(of: Endpoint?.self)
        Task { [ask] in
            continuation.yield(await ask(endpoints))
            continuation.finish()
        }
        // The stream ends without an element when the waiting task is cancelled.
        for await choice in choices { return choice }
        throw CancellationError()
    }
}
