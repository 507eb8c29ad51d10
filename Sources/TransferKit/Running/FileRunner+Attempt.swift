import SystemPackage
import TransferCore

extension FileRunner {
    /// Looks at the file, compares it with what earlier attempts sent, and makes the attempt.
    mutating func prepare(at endpoint: Endpoint) async throws -> PreparedAttempt {
        history.hasMoved = false
        guard let transport = context.transports[endpoint.transport] else {
            throw TransferError(.unsupported, .unsupported, "This process has no transport named \"\(endpoint.transport)\".")
        }
        let path = file.source
        let identity = try await DiskThread.run { () throws(TransferError) in try SourceIdentity(ofFileAt: path) }
        if let stored = checkpoints[endpoint.address] { try await settle(identity, against: stored) }
        let stored = checkpoints[endpoint.address]?.checkpoint
        if identity.size != file.size { context.post(.file(position: file.position, .size(identity.size))) }
        let (isNew, before) = record.announce(endpoint)
        if isNew { context.post(.endpoint(endpoint)) }
        if let before { context.post(.endpointChanged(from: before, to: endpoint.location)) }
        history.attempts += 1
        history.home = endpoint
        let source = UploadSource(path: path, identity: identity)
        let attempt = FileAttempt(
            transferID: "\(context.id)-\(file.position)-\(file.generation)", number: history.attempts, endpoint: endpoint,
            source: source, remotePath: try RemotePath(bytes: file.destination), checkpoint: stored,
            options: AttemptOptions(context.options),
            origin: AttemptOrigin(session: "\(context.id)", item: file.position),
            credentials: context.credentials, logger: context.logger)
        let active = context.live.begin(
            position: file.position, size: identity.size, knownSize: file.size, counted: file.confirmed, stored: stored?.confirmed ?? 0)
        file.size = identity.size
        return PreparedAttempt(
            attempt: attempt, source: source, transport: transport, active: active, saved: Locked(checkpoints[endpoint.address]),
            failuresBefore: record.failures(of: endpoint), signs: SignsOfLife(context: context, record: record, endpoint: endpoint))
    }

    /// Makes sure that what was sent is the beginning of what the file is now.
    private mutating func settle(_ identity: SourceIdentity, against stored: StoredCheckpoint) async throws {
        switch identity.difference(from: stored.identity) {
        case nil:
            return
        case .content(let change):
            throw changed(change)
        case .fileReplaced:
            let confirmed = stored.checkpoint.confirmed
            guard confirmed > 0 else { return }
            guard let digest = stored.identity.prefixDigest else {
                // By size and time it is the same file, so nobody needs to be asked; but what was sent can't be compared.
                try await startOver(changed("it was replaced by another file"))
                return
            }
            guard await PrefixDigest.make(ofFileAt: file.source, identity: identity, confirmed: confirmed) == digest else {
                throw changed("it was replaced by another file with other content")
            }
        }
    }

    private func changed(_ what: String) -> TransferError {
        TransferError(
            .sourceChanged, .sourceChanged,
            "\(file.source) changed after a part of it was sent: \(what). Retry it to send the new content.")
    }

    /// Lets the transport do it, and tells when the file is complete.
    mutating func perform(_ prepared: PreparedAttempt) async throws {
        let active = prepared.active
        do {
            let receipt = try await send(prepared)
            guard receipt.bytes == active.size else {
                throw TransferError(
                    .protocolViolation, .badAnswer,
                    "\(file.source) has \(active.size) bytes, but \(receipt.bytes) are said to have arrived.")
            }
            context.live.end(active, confirmed: active.size)
            context.live.finish(position: file.position, isCompleted: true)
            prepared.signs.answered()
            let report = Report.Content.file(position: file.position, .completed(receipt, endpoint: prepared.endpoint))
            if active.size <= FileWindow.smallSize { context.postUnhurried(report) } else { context.post(report) }
        } catch {
            context.live.end(active, confirmed: active.shownConfirmed)
            history.hasMoved = prepared.signs.hasAnswered
            history.progressed(
                to: active.confirmed, of: active.size, at: prepared.endpoint, from: prepared.attempt.checkpoint?.confirmed ?? 0)
            checkpoints[prepared.endpoint.address] = prepared.saved.withLock { $0 }
            throw error
        }
    }

    /// Runs the transport in a task of its own, which the stall watch can end without ending the run.
    private func send(_ prepared: PreparedAttempt) async throws -> TransferReceipt {
        let (attempt, transport, active) = (prepared.attempt, prepared.transport, prepared.active)
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
        let (context, active, signs, saved) = (context, prepared.active, prepared.signs, prepared.saved)
        let (endpoint, source) = (prepared.endpoint, prepared.source)
        let (position, generation) = (file.position, file.generation)
        return AttemptReporter(
            progress: { sent, confirmed in
                active.report(sent: sent, confirmed: confirmed)
                if confirmed > active.start { signs.answered() } else if sent > active.start { signs.sent() }
            },
            checkpoint: { checkpoint in
                var identity = source.identity
                // A small file that was replaced is sent again rather than compared.
                if checkpoint.confirmed > FileWindow.smallSize {
                    identity.prefixDigest = await PrefixDigest.make(
                        ofFileAt: source.path, identity: identity, confirmed: checkpoint.confirmed)
                }
                try await context.tell(
                    .file(position: position, .checkpoint(checkpoint, endpoint: endpoint, generation: generation, identity)))
                saved.withLock { $0 = StoredCheckpoint(checkpoint: checkpoint, identity: identity) }
                // A transport may save what it is about to ask for; only bytes that are there say that somebody answered.
                if checkpoint.confirmed > 0 { signs.answered() }
            },
            allowance: { limit in
                let allowance = context.allowance(limit)
                if allowance.bytes == 0 { active.heldBack() }
                return allowance
            })
    }
}
