import TransferCore

/// Runs one activation of a session: its files in order, one after the other.
struct SessionRunner: Sendable {
    let context: RunContext

    private static let sampleInterval = Duration.milliseconds(100)
    private static let page = 256
    /// After the store could not be read or written.
    private static let storeRetryDelay = Duration.seconds(10)

    /// Runs until no file is left, the session has to wait, or the task is cancelled; the last thing it does is to report how it ended.
    ///
    /// - Parameters:
    ///   - histories: What happened to the session's files in earlier runs of this process.
    ///   - publish: Takes the figures, at most ten times a second.
    /// - Returns: The histories for the next run.
    @concurrent
    func run(
        _ histories: [Int64: FailureVerdict.History], publish: @escaping @Sendable (SessionStatistics) -> Void
    ) async -> [Int64: FailureVerdict.History] {
        let monitor = Task { await watch(publish) }
        var histories = histories
        var outcome: RunOutcome
        do {
            outcome = try await runFiles(&histories)
        } catch is CancellationError {
            outcome = .interrupted
        } catch {
            let error = TransferError(.transient, .internalFailure, "The session can't go on. \(error)")
            outcome = Task.isCancelled ? .interrupted : .backoff(Self.storeRetryDelay, error)
        }
        monitor.cancel()
        await monitor.value
        publish(context.live.statistics(at: context.clock.now()))
        context.post(.ended(outcome))
        return histories
    }

    private func runFiles(_ histories: inout [Int64: FailureVerdict.History]) async throws -> RunOutcome {
        let endpoints = EndpointChoice(context.account, transports: Set(context.transports.keys))
        var announced: Endpoint?
        try await prepare()
        var failure = try await context.store.firstFailure(of: context.key)
        // The process may have ended between the failure of a file and that of the session.
        if let failure, context.options.onItemFailure == .failSession || failure.failureClass == .remoteFull {
            return .finished(failure: failure, itemsSeen: 0)
        }
        var position: Int64 = -1
        while true {
            let files = try await context.store.pendingFiles(of: context.key, after: position, limit: Self.page)
            if files.isEmpty, try await prepare() {
                if failure == nil { failure = try await context.store.firstFailure(of: context.key) }
                continue
            }
            guard !files.isEmpty else { return .finished(failure: summary(of: failure), itemsSeen: 0) }
            for file in files {
                try Task.checkCancellation()
                position = file.position
                if let endpoint = endpoints.current, endpoint != announced {
                    announced = endpoint
                    context.post(.endpoint(endpoint))
                }
                var runner = FileRunner(
                    context: context, endpoints: endpoints, file: file, history: histories[position] ?? FailureVerdict.History())
                let outcome: FileRunner.Outcome
                do {
                    outcome = try await runner.run()
                } catch {
                    histories[position] = runner.history
                    throw error
                }
                histories[position] = nil
                switch outcome {
                case .completed:
                    continue
                case .givenUp(let error):
                    giveUp(file, error)
                    failure = failure ?? error
                    if context.options.onItemFailure == .failSession { return .finished(failure: error, itemsSeen: 0) }
                case .sessionFailed(let error):
                    giveUp(file, error)
                    return .finished(failure: error, itemsSeen: 0)
                case .backoff(let delay, let error):
                    histories[position] = runner.history
                    return .backoff(delay, error)
                case .accountBlocked(let error, let account):
                    return .accountBlocked(error, account)
                }
            }
        }
    }

    /// Reads the session's folders; says whether there were items that had yet to go into the list of files.
    @discardableResult
    private func prepare() async throws -> Bool {
        guard try await context.store.hasPendingItems(of: context.key) else { return false }
        context.live.prepare()
        let expansion = FolderExpansion(of: context.key, in: context.store) { [context] in try await context.tell(.expansion($0)) }
        context.live.prepared(try await expansion.run())
        return true
    }

    private func giveUp(_ file: PendingFile, _ error: TransferError) {
        context.post(.file(position: file.position, .failed(error)))
        context.live.finish(position: file.position, isCompleted: false)
    }

    /// A session of one file fails with that file's own error; a larger one says how many failed, and why the first did.
    private func summary(of failure: TransferError?) -> TransferError? {
        guard let failure else { return nil }
        let statistics = context.live.statistics(at: context.clock.now())
        guard statistics.files > 1 else { return failure }
        return TransferError(
            failure.failureClass, .itemsFailed,
            "\(statistics.filesFailed) of \(statistics.files) files failed, the first because: \(failure.message)",
            cause: failure.cause)
    }

    /// Samples the progress of the files in flight: for the figures, and to end attempts that hang.
    private func watch(_ publish: @Sendable (SessionStatistics) -> Void) async {
        var watches: [ObjectIdentifier: (file: ActiveFile, watch: StallWatch)] = [:]
        var published: SessionStatistics?
        while (try? await context.clock.sleep(Self.sampleInterval)) != nil {
            let now = context.clock.now()
            let active = context.live.activeFiles
            let present = Set(active.map(ObjectIdentifier.init))
            watches = watches.filter { present.contains($0.key) }
            for file in active where !file.isStalled {
                var entry =
                    watches[ObjectIdentifier(file)]
                    ?? (
                        file,
                        StallWatch(
                            file, stallTimeout: context.options.stallTimeout, responseTimeout: context.options.responseTimeout, at: now)
                    )
                if entry.watch.sample(file, at: now) { file.stall() }
                watches[ObjectIdentifier(file)] = entry
            }
            let sample = context.live.sample(at: now)
            if sample != published {
                published = sample
                publish(context.live.statistics(at: now))
            }
        }
    }
}
