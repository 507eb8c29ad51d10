import TransportSupport

/// Runs commands at the server of a connection.
package protocol CommandRunner: Sendable {
    /// Runs a command by the account's shell.
    ///
    /// - Returns: What it printed, also if it failed.
    /// - Throws: A `TransferError` if it can't be run; `CancellationError` at once when the task is cancelled.
    func run(_ command: [UInt8], input: [UInt8]) async throws -> [UInt8]
}

/// Asks the server of one connection for checksums: for all files that wait while it is busy at once.
package actor RemoteChecksums {
    private struct Wanted {
        let path: [UInt8]
        let size: Int64
        let answer: Once<ContentDigest?>
    }

    private let runner: (any CommandRunner)?
    /// Asked once whether there is a shell, and what it computes.
    private var question: Task<ChecksumAlgorithm?, Never>?
    private var waiting: [Wanted] = []
    private var running = 0

    /// Two, so that small files need not wait for a large one.
    private static let mostAtOnce = 2
    /// For one command.
    private static let mostFiles = 100
    /// For one command; a larger file has one of its own.
    private static let mostBytes: Int64 = 256 << 20

    /// - Parameter runner: Nil if the server runs no commands.
    package init(_ runner: (any CommandRunner)?) {
        self.runner = runner
    }

    /// The algorithm that the server's shell has a program for; nil if there is none, or no shell.
    ///
    /// - Throws: `CancellationError` at once when the task is cancelled.
    package nonisolated func algorithm() async throws -> ChecksumAlgorithm? {
        let answer = Once<ChecksumAlgorithm?>()
        Task { answer.resume(.success(await self.ask())) }
        return try await answer.valueUnlessCancelled()
    }

    private func ask() async -> ChecksumAlgorithm? {
        if let question { return await question.value }
        // Without any names: whatever the server runs in place of a command gets nothing that it could take for something else.
        let question = Task { await self.run([], within: Self.patience)?.algorithm }
        self.question = question
        return await question.value
    }

    /// The checksum of a file at the server.
    ///
    /// - Returns: Nil if the server's shell can't tell.
    /// - Throws: `CancellationError` at once when the task is cancelled.
    package nonisolated func digest(of path: [UInt8], size: Int64) async throws -> ContentDigest? {
        guard try await algorithm() != nil else { return nil }
        let answer = Once<ContentDigest?>()
        await add(Wanted(path: path, size: size, answer: answer))
        return try await answer.valueUnlessCancelled { Task { await self.remove(answer) } }
    }

    /// How many files wait for a command that has not begun.
    package var backlog: Int { waiting.count }

    private func add(_ wanted: Wanted) {
        waiting.append(wanted)
        goOn()
    }

    private func remove(_ answer: Once<ContentDigest?>) {
        waiting.removeAll { $0.answer === answer }
    }

    private func goOn() {
        while running < Self.mostAtOnce, let first = waiting.first {
            var bytes = first.size
            var count = 1
            while count < min(waiting.count, Self.mostFiles), bytes + waiting[count].size <= Self.mostBytes {
                bytes += waiting[count].size
                count += 1
            }
            let batch = Array(waiting.prefix(count))
            waiting.removeFirst(count)
            running += 1
            Task { [bytes] in await self.compute(batch, bytes) }
        }
    }

    private func compute(_ batch: [Wanted], _ bytes: Int64) async {
        let digests = await run(batch.map(\.path), within: Self.patience + .seconds(bytes / Self.slowest))?.digests ?? []
        for (index, wanted) in batch.enumerated() {
            wanted.answer.resume(.success(index < digests.count ? digests[index] : nil))
        }
        // What can't be had once is not waited for again.
        if digests.isEmpty { question = Task { nil } }
        running -= 1
        goOn()
    }

    /// How long a command may take that has little to do.
    private static let patience = Duration.seconds(60)
    /// How many bytes a second the slowest server works off.
    private static let slowest: Int64 = 1 << 20

    private nonisolated func run(
        _ paths: [[UInt8]], within limit: Duration
    ) async -> (algorithm: ChecksumAlgorithm, digests: [ContentDigest?])? {
        guard let runner else { return nil }
        let command = Task { try await runner.run(ChecksumCommand.text, input: ChecksumCommand.input(paths)) }
        let alarm = Task {
            try await Task.sleep(for: limit)
            command.cancel()
        }
        defer { alarm.cancel() }
        // Why a command fails is of no interest: a connection that broke is noticed by what is tried next.
        return (try? await command.value).flatMap(ChecksumCommand.results)
    }
}
