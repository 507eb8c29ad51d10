import Logging
import SystemPackage
import TransferCore

/// What a run of a session works with.
struct RunContext: Sendable {
    let key: SessionKey
    let id: SessionID
    let activation: UInt64
    /// The account when the run began.
    let account: Account
    /// The account as it is now; nil once the session is gone.
    let currentAccount: @Sendable () async -> Account?
    let options: SessionOptions
    let transports: [TransportID: any Transport]
    let credentials: any CredentialProvider
    let store: QueueStore
    let mailbox: Mailbox
    let clock: EngineClock
    let randomFraction: @Sendable () -> Double
    let logger: Logger
    let live: LiveRun

    /// Puts a report into the mailbox: stored in this order, without waiting for it.
    func post(_ content: Report.Content) {
        mailbox.post(.report(Report(key: key, run: activation, content: content)))
    }

    /// Puts a report into the mailbox, and returns when it is durable.
    func tell(_ content: Report.Content) async throws(QueueError) {
        try await mailbox.send(.report(Report(key: key, run: activation, content: content)))
    }
}

/// Moves one file: attempt after attempt, until it arrived, was given up, or has to wait for longer than a slot is kept.
struct FileRunner {
    enum Outcome {
        case completed
        case givenUp(TransferError)
        case sessionFailed(TransferError)
        case backoff(Duration, TransferError)
        case accountBlocked(TransferError, Account)
    }

    let context: RunContext
    let endpoints: EndpointChoice
    var file: PendingFile
    var history: FailureVerdict.History

    /// - Throws: `CancellationError` when the run was interrupted; ``QueueError`` when the store can't be read.
    mutating func run() async throws -> Outcome {
        while true {
            try Task.checkCancellation()
            if let account = await context.currentAccount() { endpoints.follow(account) }
            guard let endpoint = endpoints.current else {
                return .givenUp(
                    TransferError(
                        .unsupported, .unsupported, "No transport of this process serves the account \"\(context.account.name)\"."))
            }
            let error: TransferError
            do {
                let receipt = try await attempt(at: endpoint)
                endpoints.succeeded()
                context.post(.file(position: file.position, .completed(receipt, endpoint: endpoint)))
                context.live.finish(position: file.position, isCompleted: true)
                return .completed
            } catch let thrown as TransferError {
                error = thrown
            } catch let thrown as CancellationError {
                throw thrown
            } catch let thrown as QueueError {
                throw thrown
            } catch {
                throw error
            }
            try Task.checkCancellation()
            if let outcome = try await react(to: error, at: endpoint) { return outcome }
        }
    }

    /// Does what the error's class asks for; nil to try again.
    private mutating func react(to error: TransferError, at endpoint: Endpoint) async throws -> Outcome? {
        history.failures += 1
        history.violations = error.failureClass == .protocolViolation ? history.violations + 1 : 0
        history.hasNextEndpoint = endpoints.hasNext
        let verdict = FailureVerdict(error: error, history: history, policy: context.options.retry, fraction: context.randomFraction())
        context.logger.notice(
            "An attempt failed: \(error)",
            metadata: ["item": "\(file.position)", "endpoint": "\(endpoint.location)", "verdict": "\(verdict)"])
        switch verdict {
        case .retry(let delay) where delay <= RetryPolicy.slotKept:
            context.post(.attemptFailed(error, retryIn: delay, endsRun: true))
            try await context.clock.sleep(delay)
            return nil
        case .retry(let delay):
            return .backoff(delay, error)
        case .restart:
            history.hasRestarted = true
            history.hasCheckpoint = false
            file.generation += 1
            context.live.restart(position: file.position)
            try await context.tell(.file(position: file.position, .restarted(generation: file.generation, error)))
            return nil
        case .nextEndpoint:
            endpoints.advance()
            history.hasCheckpoint = false
            context.post(.attemptFailed(error, retryIn: .zero, endsRun: true))
            return nil
        case .giveUpFile:
            return .givenUp(error)
        case .failSession:
            return .sessionFailed(error)
        case .blockAccount:
            return .accountBlocked(error, endpoints.account)
        }
    }

    private mutating func attempt(at endpoint: Endpoint) async throws -> TransferReceipt {
        guard let transport = context.transports[endpoint.transport] else {
            throw TransferError(.unsupported, .unsupported, "This process has no transport named \"\(endpoint.transport)\".")
        }
        let path = file.source
        let identity = try await DiskThread.run { () throws(TransferError) in try SourceIdentity(ofFileAt: path) }
        let stored = try await context.store.checkpoint(
            session: context.key, position: file.position, endpoint: endpoint.address, generation: file.generation)
        if let stored { try check(identity, against: stored.identity) }
        if identity.size != file.size { context.post(.file(position: file.position, .size(identity.size))) }

        let start = stored?.checkpoint.confirmed ?? 0
        let attempt = FileAttempt(
            transferID: "\(context.id)-\(file.position)-\(file.generation)", number: history.failures + 1, endpoint: endpoint,
            source: UploadSource(path: path, identity: identity), remotePath: try RemotePath(bytes: file.destination),
            checkpoint: stored?.checkpoint, options: AttemptOptions(metadata: context.options.metadata), credentials: context.credentials,
            logger: context.logger)
        let active = context.live.begin(
            position: file.position, size: identity.size, knownSize: file.size, counted: file.confirmed, stored: start)
        let before = active.confirmed
        file.size = identity.size
        defer {
            history.hasCheckpoint = active.confirmed > 0
            if RetryPolicy.isProgress(confirmed: active.confirmed - before, of: identity.size) {
                history = FailureVerdict.History(hasCheckpoint: history.hasCheckpoint)
            }
        }
        do {
            let receipt = try await perform(attempt, with: transport, active)
            guard receipt.bytes == identity.size else {
                throw TransferError(
                    .protocolViolation, .badAnswer, "\(path) has \(identity.size) bytes, but \(receipt.bytes) are said to have arrived.")
            }
            context.live.end(active, confirmed: identity.size)
            return receipt
        } catch {
            context.live.end(active, confirmed: active.confirmed)
            throw error
        }
    }

    private func check(_ identity: SourceIdentity, against earlier: SourceIdentity) throws(TransferError) {
        let what: String
        switch identity.difference(from: earlier) {
        case nil: return
        case .content(let change): what = change
        case .fileReplaced: what = "it was replaced by another file"
        }
        throw TransferError(
            .sourceChanged, .sourceChanged,
            "\(file.source) changed after a part of it was sent: \(what). Enqueue it again to send the new content.")
    }

    /// Runs the transport in a task of its own, which the stall watch can end without ending the run.
    private func perform(_ attempt: FileAttempt, with transport: any Transport, _ active: ActiveFile) async throws -> TransferReceipt {
        let (context, position, generation) = (context, file.position, file.generation)
        let reporter = AttemptReporter(
            progress: { sent, confirmed in active.report(sent: sent, confirmed: confirmed) },
            checkpoint: { checkpoint in
                try await context.tell(
                    .file(
                        position: position,
                        .checkpoint(checkpoint, endpoint: attempt.endpoint, generation: generation, attempt.source.identity)))
            })
        let task = Task { try await transport.perform(attempt, reporting: reporter) }
        active.whenStalled { task.cancel() }
        do {
            return try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
        } catch let error as TransferError {
            throw error
        } catch let error as QueueError {
            throw error
        } catch is CancellationError where active.isStalled && !Task.isCancelled {
            throw TransferError(
                .transient, .stalled,
                "Nothing moved between this machine and \(attempt.endpoint.location) for too long while \(file.source) was sent.")
        } catch is CancellationError where Task.isCancelled {
            throw CancellationError()
        } catch {
            throw TransferError(
                .transient, .internalFailure, "The transport \"\(transport.id)\" failed in a way that it does not explain.",
                cause: "\(error)")
        }
    }
}
