import Locking
package import Logging
package import TransferCore

/// Asks an app which endpoint a session is to use, once for each set of endpoints that there is to choose from.
///
/// Belongs to one run: however long the app takes, no other session waits for it.
package final class EndpointQuestion: Sendable {
    private let ask: @Sendable ([Endpoint]) async -> Endpoint?
    private let logger: Logger
    /// The answers by what was offered, in whatever order: nil within for the queue's own choice.
    private let answers = Locked<[Set<Endpoint>: Endpoint?]>([:])

    package init(logger: Logger, ask: @escaping @Sendable ([Endpoint]) async -> Endpoint?) {
        self.logger = logger
        self.ask = ask
    }

    /// The app's choice; nil if it leaves that to the queue, or there is nothing to choose.
    ///
    /// - Throws: `CancellationError` when the run is interrupted, whether there is an answer or not.
    package func choice(among endpoints: [Endpoint]) async throws(CancellationError) -> Endpoint? {
        guard endpoints.count > 1 else { return nil }
        let offered = Set(endpoints)
        if let known = answers.withLock({ $0[offered] }) { return known }
        let answer = try await answer(to: endpoints)
        let isOffered = answer.map { endpoints.contains($0) } ?? true
        if !isOffered, let answer {
            logger.warning(
                "The delegate chose an endpoint that was not offered; the queue chooses itself.",
                metadata: ["endpoint": "\(answer.location)"])
        }
        let chosen = isOffered ? answer : nil
        answers.withLock { $0[offered] = .some(chosen) }
        return chosen
    }

    /// Waits for the answer or for the run's interruption, whatever comes first. An app that never answers must not keep the run.
    private func answer(to endpoints: [Endpoint]) async throws(CancellationError) -> Endpoint? {
        let (answers, continuation) = AsyncStream.makeStream(of: Endpoint?.self)
        Task { [ask] in
            continuation.yield(await ask(endpoints))
            continuation.finish()
        }
        // The stream ends without an element when the task that waits is cancelled.
        for await answer in answers { return answer }
        throw CancellationError()
    }
}
