import Foundation
package import Logging
import SystemPackage
package import TransferCore

/// The dependencies of a session's run.
package struct RunContext: Sendable {
    package var key: SessionKey
    package var id: SessionID
    /// The number of the run; see ``RunEvent/run``.
    package var run: UInt64
    /// Returns the session's current account and the endpoints that this run may use; nil if the session was removed. Called before each
    /// attempt.
    package var currentEndpoints: @Sendable () async -> EndpointAvailability?
    package var transports: [TransportID: any Transport]
    package var credentials: any CredentialProvider
    /// Shared by all runs of a queue.
    package var endpoints: EndpointStates
    /// Shared by all runs of a queue.
    package var routes = RouteGap()
    /// Returns the number of bytes, up to a limit, that the rate limits allow now.
    package var allowance: @Sendable (Int) -> Allowance
    package var store: QueueStore
    package var mailbox: Mailbox
    package var clock: EngineClock
    package var randomFraction: @Sendable () -> Double
    package var logger: Logger
    package var live: LiveRun
    package var streams: StreamRegistry
    /// Called with each change of a file's progress before the queue stores the change; see ``QueueConfiguration/progressObserver``.
    var progressObserver: (@Sendable (SessionID, FileProgress) async throws -> Void)?
    /// Reports that the session can't continue, because the database is damaged.
    var storageFailed: @Sendable (QueueError) -> Void = { _ in }
    /// Makes the queue abandon the run unless the run ends within 30 s.
    var limitEnd: @Sendable () async -> Void = {}
    /// Publishes an event that is not stored, unless the queue abandoned the run.
    var publish: @Sendable (QueueEvent.Kind) -> Void = { _ in }
    /// Called before the run inspects a local file, on the thread that inspects the file. Only tests set this closure.
    var localReadObserver: (@Sendable (FilePath) -> Void)?
    /// The maximum number of files and folders in a session with remote folders.
    package var maximumListedNames: Int64 = 10_000_000
    let endpointQuestion: EndpointQuestion
    var names: RunNameClashes { live.names }

    package init(
        key: SessionKey, id: SessionID, run: UInt64, currentEndpoints: @escaping @Sendable () async -> EndpointAvailability?,
        transports: [TransportID: any Transport], credentials: any CredentialProvider,
        endpoints: EndpointStates = EndpointStates(),
        allowance: @escaping @Sendable (Int) -> Allowance = { Allowance(bytes: $0) }, store: QueueStore, mailbox: Mailbox,
        clock: EngineClock, randomFraction: @escaping @Sendable () -> Double, logger: Logger, live: LiveRun,
        streams: StreamRegistry = StreamRegistry(), chooseEndpoint: @escaping @Sendable ([Endpoint]) async -> Endpoint? = { _ in nil }
    ) {
        self.key = key
        self.id = id
        self.run = run
        self.currentEndpoints = currentEndpoints
        self.transports = transports
        self.credentials = credentials
        self.endpoints = endpoints
        self.allowance = allowance
        self.store = store
        self.mailbox = mailbox
        self.clock = clock
        self.randomFraction = randomFraction
        self.logger = logger
        self.live = live
        self.streams = streams
        endpointQuestion = EndpointQuestion(logger: logger, ask: chooseEndpoint)
    }

    var options: SessionOptions { live.options }

    /// Sets the outcome of a run that ends as soon as its files in flight and the expansion of its folders have ended. If this takes longer
    /// than 30 s, the queue abandons the run.
    func willEnd(with outcome: RunOutcome) async {
        live.setOutcome(outcome)
        await limitEnd()
    }

    /// Adds a report to the mailbox without waiting. Reports are handled in the order of the calls. If the queue abandoned the run, adds
    /// only the report of the run's end.
    func post(_ content: RunEvent.Content) {
        guard !live.isAbandoned || content.isEnd else { return }
        mailbox.post(input(content))
    }

    /// Adds a report to the mailbox without waiting, unless the queue abandoned the run. The report may be stored later, in one transaction
    /// with other reports.
    func postDeferrable(_ content: RunEvent.Content) {
        guard !live.isAbandoned else { return }
        mailbox.postDeferrable(input(content), clock: clock)
    }

    /// Adds a report to the mailbox, and returns when the report is durable.
    ///
    /// - Throws: ``QueueError`` if the database fails, with the code `progressRefused` if the progress observer throws an error, or with the
    ///   code `shutDown` if the queue abandoned the run or was shut down.
    @discardableResult
    func send(_ content: RunEvent.Content) async throws(QueueError) -> InputResult {
        try await observe(content)
        let result = live.isAbandoned ? nil : try await mailbox.send(input(content))
        // The queue ignores reports of a run that it has abandoned.
        guard let result, !live.isAbandoned else {
            throw QueueError(.shutDown, "The queue abandoned the run of the session \(id).")
        }
        return result
    }

    /// Calls ``observe(_:position:)`` if a report contains a change of a file's progress. A change of a file's size does not count.
    private func observe(_ content: RunEvent.Content) async throws(QueueError) {
        guard case .file(let position, let event) = content else { return }
        if case .size = event { return }
        try await observe(event, position: position)
    }

    /// Passes a change of one file's progress to the progress observer, and waits for the observer.
    ///
    /// - Throws: ``QueueError`` with the code `progressRefused` if the observer throws an error.
    func observe(_ event: FileEvent, position: Int64) async throws(QueueError) {
        guard let progressObserver else { return }
        do {
            try await progressObserver(id, FileProgress(position: position, event: event))
        } catch {
            throw QueueError(.progressRefused, "The progress of session \(id) can't be recorded. \(error)")
        }
    }

    private func input(_ content: RunEvent.Content) -> Input {
        .report(RunEvent(key: key, run: run, content: content))
    }

    /// The error of a session with a failed file. A session of one file fails with that file's error. The error of a larger session contains the
    /// number of failed files and the first error.
    func summary(of failure: TransferError) -> TransferError {
        let statistics = live.statistics(at: clock.now())
        guard statistics.files > 1 else { return failure }
        return TransferError(
            failure.failureClass, .itemsFailed,
            "\(statistics.filesFailed) of \(statistics.files) files failed. First error: \(failure.message)",
            cause: failure.cause)
    }
}
