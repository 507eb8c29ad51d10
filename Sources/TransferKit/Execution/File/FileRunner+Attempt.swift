import Locking
import Logging
import SystemPackage
import Tracing
import TransferCore

extension FileRunner {
    /// Inspects the local file (the source of an upload, or the destination of a download), and creates the attempt. Returns nil if the
    /// endpoint failed too often, and another run is probing it, that is, testing it with an attempt.
    ///
    /// - Throws: ``TransferError`` if the attempt can't begin; `CancellationError`; ``QueueError`` if the database can't be used.
    mutating func prepare(at endpoint: Endpoint) async throws -> PreparedAttempt? {
        history.began()
        if history.mayHaveRecord { throw TransferError.outcomeUnknown }
        guard let transport = context.transports[endpoint.transport] else {
            throw TransferError(.unsupported, .unsupported, "This process has no transport named \"\(endpoint.transport)\".")
        }
        try await context.names.check(file, at: endpoint, transport, in: context)
        let inspected = try await payload(at: endpoint)
        guard try await requestAccess(to: endpoint) else { return nil }
        let stored = checkpoints[endpoint.address]?.checkpoint
        if let size = inspected.size, size != file.size { reportSize(size) }
        announce(endpoint)
        history.attempts += 1
        history.lastEndpoint = endpoint
        var logger = context.logger
        for (key, value) in logMetadata(at: endpoint) { logger[metadataKey: key] = value }
        var attempt = FileAttempt(
            transferID: transferID, number: history.attempts, isRestarted: isRestarted(at: endpoint), endpoint: endpoint,
            payload: inspected.payload, remotePath: try RemotePath(bytes: file.destination), checkpoint: stored,
            options: AttemptOptions(context.options, uploadURL: file.uploadCapability, creationURL: file.creationCapability),
            origin: AttemptOrigin(
                session: "\(context.id)", item: file.position, context: context.live.context, account: availability.account.name),
            credentials: context.credentials, logger: logger)
        attempt.partID = partID
        let active = context.live.begin(
            position: file.position, size: inspected.size, knownSize: file.size, countedBytes: file.confirmed,
            stored: stored?.confirmed ?? 0,
            isSizeGuessed: file.isListed,
            isAwaiting: { [stream = inspected.stream, turns, position = file.position] in
                turns.isWaitingForTurn(position) || stream?.isAwaited(at: $0) ?? false
            }, now: context.clock.now)
        file.size = inspected.size
        if !hasStarted, context.options.reportsItemProgress { context.publish(.itemStarted(context.id, position: file.position)) }
        hasStarted = true
        // The size of a stream becomes known when the stream ends.
        inspected.stream?.whenComplete { [self] in setSize(of: active, $0) }
        inspected.stream?.whenDelayed { [context, position = file.position, logger] delay in
            switch delay {
            case .shortage(let error): Self.reportShortage(error, position: position, in: context, logger)
            case .untilComplete:
                logger.notice("The transport sends the stream only after the stream has ended. Until then, the stream uses disk space.")
                context.publish(.streamDelayed(context.id, position: position))
            }
        }
        return PreparedAttempt(
            attempt: attempt, identity: inspected.identity, stream: inspected.stream, transport: transport, active: active,
            saved: Locked(checkpoints[endpoint.address]),
            failuresBefore: record.failures(of: endpoint), preparation: inspected.preparation,
            activity: EndpointActivity(context: context, record: record, endpoint: endpoint))
    }

    /// Reports that a stream begins to wait for disk space, or no longer waits. The event is not stored, because the database may be on the same
    /// disk.
    ///
    /// - Parameter shortage: The error that reports the lack of space; nil if the stream no longer waits.
    private static func reportShortage(_ shortage: TransferError?, position: Int64, in context: RunContext, _ logger: Logger) {
        context.live.setShortage(shortage, position: position)
        guard let shortage else { return logger.notice("The disk has space again. The stream continues.") }
        logger.warning("\(shortage)")
        context.publish(.attemptFailed(context.id, shortage, retryAt: context.clock.date() + StreamSpool.fullDiskRetryDelay))
    }

    /// Reports the endpoint of the attempt that begins, if this endpoint differs from the endpoint of the run's last attempt. Also reports a
    /// switch of the session to an endpoint with another address.
    func announce(_ endpoint: Endpoint) {
        context.live.labels.use(endpoint.transport)
        let (isNew, before) = record.announce(endpoint)
        if isNew { context.post(.endpoint(endpoint)) }
        guard let before else { return }
        context.post(.endpointChanged(from: before, to: endpoint.location))
    }

    func logMetadata(at endpoint: Endpoint) -> Logger.Metadata {
        ["item": "\(file.position)", "endpoint": "\(endpoint.location)", "attempt": "\(history.attempts)"]
    }

    /// Whether the file restarted, and no attempt with the endpoint's transport has stored a checkpoint since.
    private func isRestarted(at endpoint: Endpoint) -> Bool {
        file.generation > 1 && !availability.registered.contains { $0.transport == endpoint.transport && checkpoints[$0.address] != nil }
    }

    /// The ID of the file's transfer, which changes at each restart.
    var transferID: String { "\(context.id)-\(file.position)-\(file.generation)" }

    /// The ID in the name of the file's part file. Contains ``SessionOptions/partEpoch``, if the session has one.
    var partID: String { context.options.partEpoch.map { "\(transferID)-\($0)" } ?? transferID }

    /// Runs the transport. If the attempt succeeds, reports the file as completed.
    ///
    /// - Throws: The ``TransferError`` of a failed attempt; `CancellationError`; ``QueueError`` if the completion can't be stored.
    mutating func perform(_ prepared: PreparedAttempt) async throws {
        let active = prepared.active
        defer {
            prepared.stream?.whenComplete(nil)
            prepared.stream?.whenDelayed(nil)
            context.live.setShortage(nil, position: active.position)
        }
        do {
            let receipt = try await withSpan("transferkit.attempt") { span in
                if span.isRecording { describe(prepared.attempt, in: span) }
                return try await send(prepared)
            }
            guard context.live.admits(receipt.bytes, insteadOf: active.size) else {
                throw TransferError(
                    .protocolViolation, .invalidResponse,
                    "\(prepared.endpoint.location) reports an impossible size for \(file.shownName): \(receipt.bytes) bytes.")
            }
            // The size in a listing may be wrong, because the file may have changed since.
            if active.size == nil || file.isListed && !active.isSizeReported { setSize(of: active, receipt.bytes) }
            guard let size = active.size, receipt.bytes == size else {
                throw TransferError(
                    .protocolViolation, .invalidResponse,
                    "\(file.shownName) has \(active.size ?? 0) bytes, but the transport \"\(prepared.endpoint.transport)\" reports \(receipt.bytes) "
                        + "transferred bytes.")
            }
            let report = RunEvent.Content.file(position: file.position, .completed(receipt, endpoint: prepared.endpoint))
            // The bytes of a stream must be kept until the completion of the file is stored. If the other end creates a record for each successful
            // attempt, the completion must be stored before the next file starts. A progress observer must have handled the completion before the
            // queue counts the file as completed.
            let isAwaited = prepared.stream != nil || active.leavesRecord || context.progressObserver != nil
            if isAwaited { try await context.send(report) }
            if prepared.stream != nil {
                context.streams.end(file.streamName, TransferError(.sourceLost, .cancelled, "The stream has arrived."))
            }
            context.live.end(active, confirmed: size)
            context.live.finish(position: file.position, isCompleted: true)
            prepared.activity.confirmed()
            guard !isAwaited else { return }
            if size <= FileWindow.smallSize { context.postDeferrable(report) } else { context.post(report) }
        } catch {
            context.live.end(active, confirmed: active.shownConfirmed)
            file.size = active.size
            history.hasConfirmed = prepared.activity.hasConfirmed
            // If the other end may have created a record of the attempt, the attempt counts as served, so that the queue does not repeat
            // the attempt endlessly.
            history.ended(
                at: prepared.endpoint, wasServed: prepared.activity.hasServed || active.leavesRecord && active.moved > 0,
                moved: active.moved, canResume: prepared.saved.withLock { $0 != nil })
            history.progressed(
                to: active.confirmed, of: active.size, at: prepared.endpoint, from: prepared.attempt.checkpoint?.confirmed ?? 0)
            checkpoints[prepared.endpoint.address] = prepared.saved.withLock { $0 }
            history.mayHaveRecord = active.mayHaveRecord
            guard active.mayHaveRecord, error is TransferError else { throw error }
            var unknown = TransferError.outcomeUnknown
            unknown.cause = "\(error)"
            throw unknown
        }
    }

    private func describe(_ attempt: FileAttempt, in span: any Span) {
        span.updateAttributes { attributes in
            attributes["transferkit.session"] = "\(context.id)"
            attributes["transferkit.item"] = file.position
            attributes["transferkit.attempt"] = attempt.number
            attributes["transferkit.account"] = availability.account.name
            attributes["transferkit.transport"] = attempt.endpoint.transport.rawValue
            attributes["transferkit.endpoint"] = attempt.endpoint.location
            attributes["transferkit.direction"] = file.kind.isDownload ? "download" : "upload"
        }
    }

    /// Runs the transport in its own task, which the stall watch can end without ending the run.
    private func send(_ prepared: PreparedAttempt) async throws -> TransferReceipt {
        if let preparation = prepared.preparation {
            try await preparation.value
            try Task.checkCancellation()
        }
        let (attempt, transport, active) = (prepared.attempt, prepared.transport, prepared.active)
        turns.begin(file.position, at: attempt.endpoint, takesTurn: waitsForTurn(at: transport) && attempt.checkpoint != nil)
        var outcome: FileConcurrency.Outcome?
        active.phases.enter(.connecting)
        defer { turns.end(file.position, active.size ?? 0 <= FileWindow.smallSize ? outcome : nil) }
        let task = Self.begin(attempt, with: transport, reporter(for: prepared))
        active.whenStalled { task.cancel() }
        do {
            let receipt = try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
            outcome = .completed
            return receipt
        } catch let error as TransferError {
            outcome = FileConcurrency.Outcome(error)
            throw error
        } catch let error as QueueError {
            throw error
        } catch is CancellationError where active.isStalled && !Task.isCancelled {
            let options = context.options
            let limit =
                active.isResponseAwaited
                ? "\(max(options.stallTimeout, options.responseTimeout)) (the response timeout)"
                : "\(options.stallTimeout) (the stall timeout)"
            throw Self.stallError(
                of: active, prepared.activity,
                "The transfer of \(file.shownName) stalled: no bytes moved to or from \(attempt.endpoint.location) for \(limit).")
        } catch is CancellationError where Task.isCancelled {
            throw CancellationError()
        } catch {
            throw TransferError(
                .transient, .internalFailure, "The transport \"\(transport.id)\" failed with an unknown error.",
                cause: "\(error)")
        }
    }

    /// Returns the error of a stalled attempt to transfer a file or to list a folder.
    ///
    /// If the endpoint confirmed or delivered nothing, and at most 1 MiB moved, the account's next endpoint may work better, so this endpoint
    /// counts as unreachable. The error's cause names the part file that the attempt leaves, if the transport reported one.
    static func stallError(of active: ActiveFile, _ activity: EndpointActivity, _ message: String) -> TransferError {
        let isSilent = !activity.hasConfirmed && active.moved <= FileWindow.smallSize
        return TransferError(isSilent ? .unreachable : .transient, .stalled, message, cause: active.remainingPartFile)
    }

    /// Runs the transport in a task, which begins immediately on systems with `Task.immediate`.
    private static func begin(_ attempt: FileAttempt, with transport: any Transport, _ reporter: AttemptReporter)
        -> Task<TransferReceipt, any Error>
    {
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            Task.immediate { try await transport.perform(attempt, reporting: reporter) }
        } else {
            Task { try await transport.perform(attempt, reporting: reporter) }
        }
    }

    /// Whether the file waits for its turn before its first request. A download does not wait: when it saves its first checkpoint, it has
    /// already begun its request.
    private func waitsForTurn(at transport: any Transport) -> Bool { file.kind != .download && transport.smallFilesAhead > 0 }

    private func reporter(for prepared: PreparedAttempt) -> AttemptReporter {
        let (context, turns, active, activity, saved) = (context, turns, prepared.active, prepared.activity, prepared.saved)
        let (endpoint, identity, file) = (prepared.endpoint, prepared.identity, file)
        let (isDownload, stream) = (file.kind == .download, prepared.stream)
        let (position, generation) = (file.position, file.generation)
        let waitsForTurn = waitsForTurn(at: prepared.transport)
        var reporter = AttemptReporter(
            progress: { sent, confirmed in
                let grew = active.report(sent: sent, confirmed: confirmed)
                stream?.confirm(confirmed)
                // The received bytes of a download count as confirmed by the other end.
                if grew.confirmed || isDownload && grew.sent {
                    activity.confirmed()
                } else if grew.sent {
                    activity.sent(active.moved)
                }
            },
            checkpoint: { checkpoint in
                var identity = identity
                // A small number of confirmed bytes needs no digest: if another file replaces this one, the new file is sent from byte 0 without a
                // comparison.
                if stream == nil, let sent = identity, checkpoint.confirmed > FileWindow.smallSize {
                    let source = UploadSource(path: file.source, identity: sent, confinement: file.confinement)
                    identity?.prefixDigest = await PrefixDigest.make(of: source, confirmed: checkpoint.confirmed, for: context)
                }
                let phase = active.phases.enter(.storing)
                defer { active.phases.leave(.storing, for: phase) }
                try await context.send(
                    .file(position: position, .checkpoint(checkpoint, endpoint: endpoint, generation: generation, identity)))
                stream?.save(checkpoint.confirmed)
                let before = saved.withLock { saved in
                    defer { saved = StoredCheckpoint(checkpoint: checkpoint, identity: identity) }
                    return saved?.checkpoint
                }
                // A transport may save a checkpoint before it sends a request or gets the response. Only an increase in confirmed bytes
                // proves that a response arrived.
                if checkpoint.confirmed > before?.confirmed ?? 0 { activity.confirmed() }
                if before == nil, waitsForTurn {
                    active.phases.leave(.storing, for: .none)
                    defer { active.phases.leave(.none, for: phase) }
                    try await turns.wait(for: position)
                }
            },
            allowance: { limit in
                let allowance = context.allowance(limit)
                if allowance.bytes == 0 { active.noteRateLimit() }
                return allowance
            },
            total: { [self] total in
                guard isDownload, context.live.admits(total, insteadOf: active.size) else { return }
                active.noteReportedSize()
                setSize(of: active, total)
            },
            activity: { active.noteWork() },
            record: { report in
                if report != .none { active.noteRecord() }
                // Without an observer, the queue repeats the attempt even if the other end may have created a record.
                guard report != .repeatable, context.progressObserver != nil else { return }
                try await context.observe(.record(isPossible: report == .possible, generation: generation), position: position)
                active.setRecordPossible(report == .possible)
            },
            wait: { active.noteAwaitedResponse() }, answer: { activity.served() })
        reporter.remainingPartFileHandler = { active.noteRemainingPartFile($0) }
        return reporter
    }

    private func setSize(of active: ActiveFile, _ size: Int64) {
        context.live.setSize(of: active, size) { reportSize(size) }
    }

    private func reportSize(_ size: Int64) {
        let report = RunEvent.Content.file(position: file.position, .size(size))
        if size <= FileWindow.smallSize { context.postDeferrable(report) } else { context.post(report) }
    }
}

extension TransferError {
    /// The failure of a file that must not be sent again, although it is unknown whether the server has it.
    package static let outcomeUnknown = TransferError(
        .permanent, .outcomeUnknown,
        "The server may already have this file: it was sent, but the server's response was lost. Check the server. Then retry the session, which "
            + "sends the file again, or remove the session.")
}
