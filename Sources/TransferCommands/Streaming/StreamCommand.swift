import ArgumentParser
import Foundation
import Locking
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

struct StreamCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stream", abstract: "Uploads standard input while it is being produced.",
        discussion: """
            Adds a session, prints its ID, and returns when the session ends. For a program that can fail, use --command: if the \
            program fails, the session fails, too. With a pipe, truncated output looks complete.

            Example: tar c stills | transferq stream studio stills.tar
            Example: transferq stream backup studio.sql --command 'pg_dump studio'
            """)

    @OptionGroup var common: CommonOptions
    @OptionGroup(title: "Position and start") var placement: PlacementOptions
    @OptionGroup(title: "Upload") var upload: UploadOptions
    @OptionGroup(title: "Transfer") var transfer: TransferOptions

    @Argument(help: "The account to upload to.", completion: Candidates.accounts, transform: TextArgument.text)
    var account: String

    @Argument(help: "The name of the file below the endpoint's folder.")
    var file: PathArgument

    @Option(
        help: ArgumentHelp("Send this shell command's output instead of stdin.", valueName: "command"),
        transform: TextArgument.text)
    var command: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The input's exact length in bytes (default: unknown).",
            valueName: "size"))
    var length: ByteCount?

    @Option(help: ArgumentHelp("The session's name (default: the file's name).", valueName: "text"), transform: TextArgument.text)
    var name: String?

    @Option(help: ArgumentHelp("A tag for selecting the session; repeatable.", valueName: "word"), transform: TextArgument.text)
    var tag: [String] = []

    func validate() throws {
        if transfer.readsStandardInput, command == nil {
            throw ValidationError("Standard input can be read only once. Pass the settings in a file, or use --setting.")
        }
        if command == "" { throw ValidationError("--command is empty. Specify a command, or omit the option to send standard input.") }
    }

    func run() async throws {
        ProcessMemoryProtection.enable()
        let terminal = CommandContext.current.terminal
        let signals = TerminationSignals {
            terminal.post("transferq: Interrupted. Cancelling the session; interrupt again to exit immediately.")
        }
        defer { signals.cancel() }
        let input = ProducerInput(try command.map { try ProducerCommand($0) })
        let destination = try RemotePath(bytes: file.path.bytes)
        let options = try await transfer.options(upload, nil)
        var request = try SessionRequest.upload(
            items: [], to: account, name: name ?? String(decoding: destination.lastComponent, as: UTF8.self), tags: tag,
            options: options)
        let status: ExitStatus
        switch try await common.reachedQueue(logger: common.logger(omittingErrorsOf: .one(request.id))) {
        case .owned(let queue):
            let server = ControlServer.open(for: queue, as: .run, logger: common.logger)
            do {
                status = try await send(input, request, as: destination, in: queue, until: signals)
            } catch {
                await server?.shutDownQueue()
                await queue.shutdown()
                throw error
            }
            // Other commands may still send streams through this process.
            while server?.hasStreams == true, !signals.isReceived { try await Task.sleep(for: Self.pollInterval) }
            await server?.shutDownQueue()
            await queue.shutdown()
        case .remote(let queue):
            try await check(request, in: queue)
            try await placement.apply(to: &request, in: queue)
            let writer = try await queue.enqueueStream(
                as: destination, request, length: length?.bytes, at: placement.position.at, held: placement.position.hold)
            if !writer.isDuplicate { try await placement.position.start([writer.session], in: queue) }
            await printID(writer.session)
            status = try await send(
                input,
                to: StreamTarget(
                    queue: queue, session: writer.session, write: { try await writer.write($0) }, finish: { try await writer.finish() },
                    fail: { try await writer.fail($0) }, waitForEnd: { try await queue.value(of: writer.session) }),
                until: signals)
        }
        if status != .done { throw status }
    }

    /// Adds the session to a queue of this process, and runs the queue until the session ends.
    private func send(
        _ input: ProducerInput, _ request: SessionRequest, as destination: RemotePath, in queue: TransferQueue,
        until signals: TerminationSignals
    ) async throws -> ExitStatus {
        var request = request
        try await check(request, in: queue)
        try await placement.apply(to: &request, in: queue)
        let (item, writer) = TransferItem.stream(as: destination, length: length?.bytes)
        request.items = [item]
        let session = try await queue.enqueue(request, at: placement.position.at, held: placement.position.hold)
        try await placement.position.start([session.id], in: queue)
        if !placement.isGiven { try await session.run() }
        await printID(session.id)
        let routes = await RouteWatch.start(for: queue)
        defer { routes.cancel() }
        try await queue.start()
        return try await send(
            input,
            to: StreamTarget(
                queue: queue, session: session.id, write: { try await writer.write($0) },
                finish: {
                    writer.finish()
                    try await writer.flush()
                },
                fail: { writer.fail($0) }, waitForEnd: { try await session.value }),
            until: signals)
    }

    private func check(_ request: SessionRequest, in queue: any ControllableQueue) async throws {
        let endpoints = try await queue.existingAccount(account).account.endpoints
        let check = AdmissionCheck(endpoints: endpoints, options: request.options, transports: CommandContext.current.transports)
        try check.check(for: .upload)
        guard let overwrite = transfer.overwrite else { return }
        for warning in try check.check(overwrite) { await common.note(warning) }
    }

    private func printID(_ id: SessionID) async {
        await CommandContext.current.output.write([id], asJSON: common.json)
    }

    private static let pollInterval = Duration.milliseconds(200)

    /// The maximum time to wait for the end of a session whose input failed. A session that has not started does not end until it starts.
    private static let failureDelay = Duration.seconds(10)

    private func send(_ input: ProducerInput, to target: StreamTarget, until signals: TerminationSignals) async throws -> ExitStatus {
        let (isInterrupted, hasEnded) = (Locked(false), Locked(false))
        try input.start()
        let observer = StreamObserver(
            queue: target.queue, session: target.session, folder: try common.folder(), reportsHold: !placement.position.hold)
        let observing = common.quiet ? nil : Task { await observer.run() }
        defer { observing?.cancel() }
        let ending = Task { try await target.waitForEnd() }
        let copying = Task { try await target.copy(input, isInterrupted: { isInterrupted.withLock { $0 } }) }
        let stopping = Task {
            // A session that has ended needs no more input.
            _ = await ending.result
            hasEnded.withLock { $0 = true }
            copying.cancel()
            input.cancel()
        }
        signals.whenReceived {
            isInterrupted.withLock { $0 = true }
            copying.cancel()
            ending.cancel()
        }
        var failure: CommandFailure?
        if case .failure(let error) = await copying.result {
            input.cancel()
            // If the session ended first, this process has terminated the command, so the command's failure is not reported.
            failure = hasEnded.withLock { $0 } ? nil : error as? CommandFailure
        }
        if failure != nil {
            Task {
                try await Task.sleep(for: Self.failureDelay)
                ending.cancel()
            }
        }
        let end = await ending.result
        await stopping.value
        switch end {
        case .success: if let failure { throw failure }
        case .failure where isInterrupted.withLock { $0 }:
            _ = try? await target.queue.cancel(target.session, discarding: true)
            return .interrupted
        case .failure(let error):
            if let failure { throw failure }
            if (error as? QueueError)?.isLossOfOwner == true {
                throw CommandFailure(
                    .storage,
                    "The process that ran the queue exited, so the stream is incomplete. Its session fails when the queue runs again.")
            }
            throw error is TransferError ? CommandFailure(.incomplete, "The session did not complete. \(error)") : error
        }
        return .done
    }
}

/// The session that receives a stream.
private struct StreamTarget: Sendable {
    let queue: any ControllableQueue
    let session: SessionID
    let write: @Sendable (Data) async throws -> Void
    /// Ends the stream, and waits until all of its bytes are in the storage folder.
    let finish: @Sendable () async throws -> Void
    /// Fails the stream, so that the server gets no complete file.
    let fail: @Sendable (any Error) async throws -> Void
    /// Waits for the end of the session. Throws the session's error if the session did not complete.
    let waitForEnd: @Sendable () async throws -> SessionStatus

    /// The time to wait for a signal after the end of the input.
    private static let signalDelay = Duration.milliseconds(200)

    /// Sends the whole input. If the input fails, the stream and its item fail.
    ///
    /// - Throws: A `CommandFailure` if the input failed; another error if the queue accepts no more bytes, or the task was cancelled.
    func copy(_ input: ProducerInput, isInterrupted: @Sendable () -> Bool) async throws {
        do {
            while let bytes = try await input.next() { try await write(bytes) }
            try await input.checkEnd()
            // Ctrl-C also ends the program that writes to the pipe, so the input may end before this process handles the signal.
            try await Task.sleep(for: Self.signalDelay)
            if isInterrupted() { throw CancellationError() }
        } catch let error as CommandFailure {
            // The queue's message contains this text after "The stream for … failed:", so the text begins with a lower-case letter.
            try? await fail(IncompleteInputError(message: error.message.prefix(1).lowercased() + error.message.dropFirst()))
            throw error
        } catch let error as Errno {
            try? await fail(error)
            throw CommandFailure(.incomplete, "Cannot read the input: \(error).")
        } catch let error as CancellationError {
            try? await fail(IncompleteInputError(message: "transferq was interrupted."))
            throw error
        }
        try await finish()
    }
}

/// The error that fails a stream whose input is incomplete. The item's error contains the message.
private struct IncompleteInputError: Error, CustomStringConvertible {
    let message: String

    var description: String { message }
}
