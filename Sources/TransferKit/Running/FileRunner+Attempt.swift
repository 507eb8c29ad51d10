import Locking
import Logging
import SystemPackage
import TransferCore

extension FileRunner {
    /// Looks at what moves, and makes the attempt; nil if another run probes the endpoint.
    mutating func prepare(at endpoint: Endpoint) async throws -> PreparedAttempt? {
        history.hasMoved = false
        history.isAnswered = false
        guard let transport = context.transports[endpoint.transport] else {
            throw TransferError(.unsupported, .unsupported, "This process has no transport named \"\(endpoint.transport)\".")
        }
        let moving = try await moving(at: endpoint)
        guard try await mayAsk(endpoint) else { return nil }
        let stored = checkpoints[endpoint.address]?.checkpoint
        if let size = moving.size, size != file.size { tellSize(size) }
        announce(endpoint)
        history.attempts += 1
        history.home = endpoint
        let attempt = FileAttempt(
            transferID: transferID, number: history.attempts, endpoint: endpoint,
            payload: moving.payload, remotePath: try RemotePath(bytes: file.destination), checkpoint: stored,
            options: AttemptOptions(context.options, uploadURL: file.uploadPlace),
            origin: AttemptOrigin(session: "\(context.id)", item: file.position, context: context.live.context),
            credentials: context.credentials, logger: context.logger)
        let active = context.live.begin(
            position: file.position, size: moving.size, knownSize: file.size, counted: file.confirmed, stored: stored?.confirmed ?? 0,
            isSizeGuessed: file.isListed,
            isAwaiting: { [stream = moving.stream, turns, position = file.position] in
                turns.isKept(position) || stream?.isAwaited(at: $0) ?? false
            })
        file.size = moving.size
        if let growth = moving.stream?.growth {
            // Of a stream the size is known at its end.
            growth.whenReadable(at: .max) { [self] in
                if case .complete(let total) = growth.extent { setSize(of: active, total) }
            }
        }
        return PreparedAttempt(
            attempt: attempt, identity: moving.identity, stream: moving.stream, transport: transport, active: active,
            saved: Locked(checkpoints[endpoint.address]),
            failuresBefore: record.failures(of: endpoint), preparation: moving.preparation,
            signs: SignsOfLife(context: context, record: record, endpoint: endpoint))
    }

    /// Tells which endpoint is used from now on, if that is news.
    func announce(_ endpoint: Endpoint) {
        let (isNew, before) = record.announce(endpoint)
        if isNew { context.post(.endpoint(endpoint)) }
        guard let before else { return }
        context.logger.notice(
            "A session goes on at another endpoint.", metadata: ["from": "\(before)", "endpoint": "\(endpoint.location)"])
        context.post(.endpointChanged(from: before, to: endpoint.location))
    }

    /// One life of the file's transfer.
    var transferID: String { "\(context.id)-\(file.position)-\(file.generation)" }

    /// Lets the transport do it, and tells when the file is complete.
    mutating func perform(_ prepared: PreparedAttempt) async throws {
        let active = prepared.active
        do {
            let receipt = try await send(prepared)
            guard context.live.admits(receipt.bytes, insteadOf: active.size) else {
                throw TransferError(
                    .protocolViolation, .badAnswer,
                    "\(prepared.endpoint.location) reports an impossible size of \(file.source): \(receipt.bytes) bytes.")
            }
            // What a listing tells is not relied on: the file may be another since.
            if active.size == nil || file.isListed && !active.isSizeTold { setSize(of: active, receipt.bytes) }
            guard let size = active.size, receipt.bytes == size else {
                throw TransferError(
                    .protocolViolation, .badAnswer,
                    "\(file.source) has \(active.size ?? 0) bytes, but \(receipt.bytes) are said to have arrived.")
            }
            let report = Report.Content.file(position: file.position, .completed(receipt, endpoint: prepared.endpoint))
            // Of a stream, the bytes are kept until it is stored that nobody needs them.
            let isAwaited = prepared.stream != nil || active.leavesRecord
            if isAwaited { try await context.tell(report) }
            if prepared.stream != nil {
                context.streams.end(file.streamName, TransferError(.sourceLost, .cancelled, "The stream has arrived."))
            }
            context.live.end(active, confirmed: size)
            context.live.finish(position: file.position, isCompleted: true)
            prepared.signs.answered()
            guard !isAwaited else { return }
            if size <= FileWindow.smallSize { context.postUnhurried(report) } else { context.post(report) }
        } catch {
            context.live.end(active, confirmed: active.shownConfirmed)
            file.size = active.size
            history.hasMoved = prepared.signs.hasAnswered
            // What may have left a record is not repeated without end.
            history.isAnswered = prepared.signs.hasServed || active.leavesRecord && active.moved > 0
            history.progressed(
                to: active.confirmed, of: active.size, at: prepared.endpoint, from: prepared.attempt.checkpoint?.confirmed ?? 0)
            checkpoints[prepared.endpoint.address] = prepared.saved.withLock { $0 }
            throw error
        }
    }

    /// Runs the transport in a task of its own, which the stall watch can end without ending the run.
    private func send(_ prepared: PreparedAttempt) async throws -> TransferReceipt {
        if let preparation = prepared.preparation {
            try await preparation.value
            try Task.checkCancellation()
        }
        let (attempt, transport, active) = (prepared.attempt, prepared.transport, prepared.active)
        defer { turns.end(file.position) }
        let task = Self.begin(attempt, with: transport, reporter(for: prepared))
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
            let options = context.options
            let limit =
                active.isAnswerAwaited
                ? "\(max(options.stallTimeout, options.responseTimeout)) (the response timeout)"
                : "\(options.stallTimeout) (the stall timeout)"
            // A server that never answered and has at most little of the file: the account's next endpoint may do better.
            let isSilent = !prepared.signs.hasAnswered && active.moved <= FileWindow.smallSize
            throw TransferError(
                isSilent ? .unreachable : .transient, .stalled,
                "Nothing moved between this machine and \(attempt.endpoint.location) for \(limit) while \(file.source) was transferred.")
        } catch is CancellationError where Task.isCancelled {
            throw CancellationError()
        } catch {
            throw TransferError(
                .transient, .internalFailure, "The transport \"\(transport.id)\" failed in a way that it does not explain.",
                cause: "\(error)")
        }
    }

    /// A task that has begun when this returns, where the system can do that.
    private static func begin(_ attempt: FileAttempt, with transport: any Transport, _ reporter: AttemptReporter)
        -> Task<TransferReceipt, any Error>
    {
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            Task.immediate { try await transport.perform(attempt, reporting: reporter) }
        } else {
            Task { try await transport.perform(attempt, reporting: reporter) }
        }
    }

    private func reporter(for prepared: PreparedAttempt) -> AttemptReporter {
        let (context, turns, active, signs, saved) = (context, turns, prepared.active, prepared.signs, prepared.saved)
        let (endpoint, identity, file) = (prepared.endpoint, prepared.identity, file)
        let (isDownload, stream) = (file.kind == .download, prepared.stream)
        let (position, generation) = (file.position, file.generation)
        return AttemptReporter(
            progress: { sent, confirmed in
                let grew = active.report(sent: sent, confirmed: confirmed)
                stream?.confirm(confirmed)
                // What a download brings was sent by the other end.
                if grew.confirmed || isDownload && grew.sent {
                    signs.answered()
                } else if grew.sent {
                    signs.sent(active.moved)
                }
            },
            checkpoint: { checkpoint in
                var identity = identity
                // A small file that was replaced is sent again rather than compared.
                if stream == nil, let sent = identity, checkpoint.confirmed > FileWindow.smallSize {
                    let source = UploadSource(path: file.source, identity: sent, confinement: file.confinement)
                    identity?.prefixDigest = await PrefixDigest.make(of: source, confirmed: checkpoint.confirmed)
                }
                try await context.tell(
                    .file(position: position, .checkpoint(checkpoint, endpoint: endpoint, generation: generation, identity)))
                stream?.save(checkpoint.confirmed)
                let before = saved.withLock { saved in
                    defer { saved = StoredCheckpoint(checkpoint: checkpoint, identity: identity) }
                    return saved?.checkpoint
                }
                // A transport may save what it is about to ask for, or what was not answered; only more bytes say that somebody answered.
                if checkpoint.confirmed > before?.confirmed ?? 0 { signs.answered() }
                if before == nil { try await turns.wait(for: position) }
            },
            allowance: { limit in
                let allowance = context.allowance(limit)
                if allowance.bytes == 0 { active.heldBack() }
                return allowance
            },
            total: { [self] total in
                guard isDownload, context.live.admits(total, insteadOf: active.size) else { return }
                active.noteSizeTold()
                setSize(of: active, total)
            },
            activity: { active.isActive() },
            record: { active.noteRecord() }, wait: { active.awaitsAnswer() }, answer: { signs.served() })
    }

    /// The size turned out.
    private func setSize(of active: ActiveFile, _ size: Int64) {
        context.live.setSize(of: active, size) { tellSize(size) }
    }

    private func tellSize(_ size: Int64) {
        let report = Report.Content.file(position: file.position, .size(size))
        if size <= FileWindow.smallSize { context.postUnhurried(report) } else { context.post(report) }
    }
}
