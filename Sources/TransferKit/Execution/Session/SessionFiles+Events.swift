import TransferCore

extension SessionFiles {
    /// An event that the run waits for.
    enum Event: Sendable {
        case file(FileRunner, Result<FileRunner.Outcome, any Error>)
        case page(Result<FilePage, any Error>)
        /// The preparations of the first `count` prepared files are now durable or could not be stored, so these files can start.
        case prepared(count: Int)
        /// A waiting file may be due.
        case due
        /// The app or the user skipped the delays of the waiting files. `version` is the version of ``LiveRun/backoffsSkipped``.
        case backoffsSkipped(version: Int)
        /// The run was interrupted, or has ended.
        case cancelled
        /// The expansion of the session's items added files.
        case grown
        /// The expansion will add no more files.
        case expansionEnds
        /// The expansion ended: with nil if all items are expanded, with the outcome of the run if a remote folder can't be listed now, or with an
        /// error.
        case expanded(Result<RunOutcome?, any Error>)
    }

    /// Waits until the app or the user skips the delays of the run's waiting files.
    static func nextSkip(in live: LiveRun, after version: Int) async -> Event {
        guard (try? await live.backoffsSkipped.wait(after: version)) != nil else { return .cancelled }
        return .backoffsSkipped(version: live.backoffsSkipped.version)
    }

    static func run(_ runner: FileRunner, from step: FileRunner.Step) async -> Event {
        var runner = runner
        do {
            let outcome = try await runner.run(from: step)
            return .file(runner, .success(outcome))
        } catch {
            return .file(runner, .failure(error))
        }
    }

    /// A file that waits for its next attempt.
    struct WaitingFile {
        let file: PendingFile
        let checkpoints: [String: StoredCheckpoint]
        var dueAt: Duration
        /// The error that made the file wait, if any.
        let error: TransferError?
    }

    /// A file that is ready to start once its preparation is durable.
    struct PreparedFile {
        let runner: FileRunner
        let step: FileRunner.Step

        /// The task that stores the part file's checkpoint, which must be durable before the file starts; nil if nothing needs to be stored.
        var preparation: Task<Void, any Error>? {
            if case .attempt(let attempt) = step { attempt.preparation } else { nil }
        }
    }
}

/// The expansion of a session's new items into files, which runs while ``SessionFiles`` transfers the files found so far.
struct ItemExpansion: Sendable {
    private let expand: @Sendable (_ noteGrowth: @escaping @Sendable () -> Void) async throws -> RunOutcome?
    private let growth: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation

    /// - Parameter expand: Adds the files to the database. Calls `noteGrowth` each time files were added. Returns the outcome of the run if not
    ///   all files can be added now.
    init(_ expand: @escaping @Sendable (_ noteGrowth: @escaping @Sendable () -> Void) async throws -> RunOutcome?) {
        self.expand = expand
        (growth, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds all files to the database.
    func run() async -> SessionFiles.Event {
        defer { continuation.finish() }
        do {
            return .expanded(.success(try await expand { continuation.yield() }))
        } catch {
            return .expanded(.failure(error))
        }
    }

    /// Waits until files have been added since the last call, or until the expansion ends. Only one call at a time.
    func next() async -> SessionFiles.Event {
        for await _ in growth { return .grown }
        return .expansionEnds
    }
}
