import Logging
import SystemPackage
import Tracing
public import TransferCore

/// Performs one run of a session.
package struct SessionRunner: Sendable {
    let context: RunContext

    /// The delay before the next run after an unexpected error, for example because the database can't be read or written.
    private static let storeRetryDelay = Duration.seconds(10)
    /// The delay before the next run if the database is damaged. The damage persists until the user acts.
    static let damageRetryDelay = Duration.seconds(60)

    package init(context: RunContext) {
        self.context = context
    }

    /// Runs until no file is left, the session fails or must wait, or the task is cancelled. The method's last action is to report the
    /// outcome.
    ///
    /// No attempt is active when the method returns.
    ///
    /// - Parameters:
    ///   - histories: The histories of the session's files by position, from earlier runs of the session in this process. The key of a listed
    ///     folder is ``RemoteFolderExpansion/position``.
    ///   - remember: Receives the histories for the next run, before that run can begin.
    ///   - publish: Receives the statistics, at most ten times a second.
    @concurrent
    package func run(
        _ histories: [Int64: FileHistory], remember: @Sendable ([Int64: FileHistory]) -> Void,
        publish: @escaping @Sendable (SessionStatistics) -> Void
    ) async {
        let outcome = await withSpan("transferkit.session") { span in
            let outcome = await perform(histories, remember: remember, publish: publish)
            if span.isRecording { span.end(session: context.id, outcome) }
            return outcome
        }
        let times = context.live.takeTimes()
        if times.total > 0 { context.post(.times(times)) }
        context.post(.ended(outcome))
    }

    private func perform(
        _ histories: [Int64: FileHistory], remember: @Sendable ([Int64: FileHistory]) -> Void,
        publish: @escaping @Sendable (SessionStatistics) -> Void
    ) async -> RunOutcome {
        let monitor = Task { [context] in
            await SessionMonitor(live: context.live, clock: context.clock, reportLongReads: context.reportLongReads).watch(
                publishItem: { context.publish(.itemProgress(context.id, position: $0, $1)) }, publish)
        }
        var files = SessionFiles(context: context, histories: histories)
        let listing = RemoteFolderExpansion(context: context, history: histories[RemoteFolderExpansion.position])
        var outcome: RunOutcome
        do {
            outcome = try await runFiles(&files, listing)
        } catch is CancellationError {
            outcome = .interrupted
        } catch let error as TransferError where error.failureClass == .noSpace {
            outcome = Task.isCancelled ? .interrupted : .noSpace(error)
        } catch {
            let damage = (error as? QueueError).flatMap { $0.code == .storageDamaged ? $0 : nil }
            if let damage { context.storageFailed(damage) }
            let error = TransferError(
                .transient, damage == nil ? .internalFailure : .storageDamaged, "The session cannot continue. \(error)")
            outcome = Task.isCancelled ? .interrupted : .backoff(damage == nil ? Self.storeRetryDelay : Self.damageRetryDelay, error)
        }
        monitor.cancel()
        await monitor.value
        publish(context.live.statistics(at: context.clock.now()))
        var remembered = files.histories
        remembered[RemoteFolderExpansion.position] = await listing.history
        remember(remembered)
        return outcome
    }

    /// Transfers the session's files, and expands its new items into files.
    private func runFiles(_ files: inout SessionFiles, _ listing: RemoteFolderExpansion) async throws -> RunOutcome {
        try await context.store.finishMarked(context.key)
        let hasItems = try await context.store.hasPendingItems(of: context.key)
        // A remote folder is listed by the endpoint that also sends the files, so the files wait for the listing. The files of a local folder are
        // sent while the folder is read.
        let isListing = hasItems && context.live.labels.direction == .download
        if isListing, let outcome = try await prepare(listing) { return outcome }
        let failure = try await context.store.firstFailure(of: context.key)
        // An earlier process may have ended after it stored the failure of a file, but before the session failed.
        if let failure, context.options.onItemFailure == .failSession || failure.failureClass == .remoteFull {
            return .finished(failure: failure, ignoresNewFiles: true)
        }
        guard hasItems, !isListing else { return try await files.run(after: failure) }
        try await expansion(listing).deleteLeftoverRows()
        return try await files.run(after: failure, expansion: ItemExpansion { try await prepare(listing, noteGrowth: $0) })
    }

    /// Expands the session's new items into files.
    ///
    /// - Parameter noteGrowth: Called each time files were added to the database.
    /// - Returns: The outcome of the run if a remote folder can't be listed now; otherwise nil.
    private func prepare(
        _ listing: RemoteFolderExpansion, noteGrowth: @escaping @Sendable () -> Void = {}
    ) async throws -> RunOutcome? {
        context.live.prepare()
        let outcome = try await expansion(listing, noteGrowth: noteGrowth).run()
        context.live.prepared()
        return outcome
    }

    private func expansion(_ listing: RemoteFolderExpansion, noteGrowth: @escaping @Sendable () -> Void = {}) -> FolderExpansion {
        let observing = context.localReadObserver.map { observer -> FolderFault in
            { folder, entries in
                if entries == 0 { observer(folder) }
                return nil
            }
        }
        return FolderExpansion(
            of: context.key, in: context.store, fault: observing, bytesKnown: { [context] in context.live.bytesKnown },
            remote: { try await listing.run($0, from: $1) },
            send: { [context] in
                try await context.send(.expansion($0))
                if case .takeFiles = $0 { noteGrowth() }
            },
            grow: { [context] in
                context.live.found($0)
                noteGrowth()
            },
            reading: { [context] folder in
                let number = context.live.beginLocalRead(of: folder, at: context.clock.now())
                return { context.live.endLocalRead(number) }
            },
            noteSkipped: { [context] folder, count in
                let entries = count == 1 ? "1 entry of \(folder) is" : "\(count) entries of \(folder) are"
                context.logger.warning(
                    "\(entries) not uploaded, for example because the session skips symbolic links.",
                    metadata: ["session": "\(context.id)"])
            })
    }
}

extension Span {
    /// Adds the outcome of a session's run to the span.
    fileprivate func end(session: SessionID, _ outcome: RunOutcome) {
        let (name, error): (String, TransferError?) =
            switch outcome {
            case .finished(nil, _): ("completed", nil)
            case .finished(let failure?, _): ("failed", failure)
            case .interrupted: ("interrupted", nil)
            case .backoff(_, let error): ("waits for a retry", error)
            case .endpointsUnavailable(let error): ("waits for an endpoint", error)
            case .accountBlocked(let error, _): ("account blocked", error)
            case .noSpace(let error): ("waits for space", error)
            }
        updateAttributes { attributes in
            attributes["transferkit.session"] = "\(session)"
            attributes["transferkit.outcome"] = name
        }
        if let error {
            recordError(error)
            setStatus(SpanStatus(code: .error))
        }
    }
}

extension TransferError.Code {
    /// The session can't continue, because the database in the storage folder is damaged.
    public static let storageDamaged = Self(rawValue: "storageDamaged")
}
