import TransferCore
package import TransportSupport

/// Runs commands on the server of a connection.
package protocol CommandRunner: Sendable {
    /// Runs a command in the account's shell.
    ///
    /// - Returns: The output, even if the command failed.
    /// - Throws: A `TransferError` if the command can't run. When the task is cancelled, throws `CancellationError` immediately.
    func run(_ command: [UInt8], input: [UInt8]) async throws -> [UInt8]
}

/// Requests checksums from the server of one connection. One command computes the checksums of all waiting files, within limits.
package actor RemoteChecksums {
    private struct ChecksumRequest {
        let path: [UInt8]
        let size: Int64
        let result: SingleResult<Checksum?>
    }

    private let runner: (any CommandRunner)?
    /// All files share the result.
    private var algorithmTask: Task<ChecksumAlgorithm?, Never>?
    private var waitingRequests: [ChecksumRequest] = []
    private var runningCommands = 0

    /// Two, so that small files do not wait for a large one.
    private static let maximumConcurrent = 2
    private static let maximumFiles = 100
    /// The maximum total size in bytes of the files of a command. A larger file gets its own command.
    private static let maximumBytes: Int64 = 256 << 20

    /// - Parameter runner: Runs commands on the server; nil if the server runs no commands.
    package init(_ runner: (any CommandRunner)?) {
        self.runner = runner
    }

    /// Returns the algorithm of a checksum program on the server; nil if the server has no such program or no shell, or if an earlier
    /// command over this connection failed.
    ///
    /// - Throws: `CancellationError` immediately when the task is cancelled.
    package nonisolated func algorithm() async throws -> ChecksumAlgorithm? {
        let result = SingleResult<ChecksumAlgorithm?>()
        Task { result.resume(.success(await self.requestAlgorithm())) }
        return try await result.valueUnlessCancelled()
    }

    private func requestAlgorithm() async -> ChecksumAlgorithm? {
        if let algorithmTask { return await algorithmTask.value }
        // The first command has no names as input, because the server may run another program than a shell, which could misinterpret the names.
        let algorithmTask = Task { await self.run([], within: Self.timeLimit(for: 0))?.algorithm }
        self.algorithmTask = algorithmTask
        return await algorithmTask.value
    }

    /// Returns the checksum of a file on the server.
    ///
    /// - Parameter size: The file's size in bytes. It determines how many files share a command, and the time limit of the command.
    ///
    /// - Returns: nil if the server's shell can't compute the checksum.
    /// - Throws: `CancellationError` immediately when the task is cancelled.
    package nonisolated func digest(of path: [UInt8], size: Int64) async throws -> Checksum? {
        guard try await algorithm() != nil else { return nil }
        let result = SingleResult<Checksum?>()
        await add(ChecksumRequest(path: path, size: size, result: result))
        return try await result.valueUnlessCancelled { Task { await self.remove(result) } }
    }

    package var backlog: Int { waitingRequests.count }

    private func add(_ request: ChecksumRequest) {
        waitingRequests.append(request)
        startCommands()
    }

    private func remove(_ result: SingleResult<Checksum?>) {
        waitingRequests.removeAll { $0.result === result }
    }

    private func startCommands() {
        while runningCommands < Self.maximumConcurrent, let first = waitingRequests.first {
            var bytes = first.size
            var count = 1
            while count < min(waitingRequests.count, Self.maximumFiles), bytes + waitingRequests[count].size <= Self.maximumBytes {
                bytes += waitingRequests[count].size
                count += 1
            }
            let batch = Array(waitingRequests.prefix(count))
            waitingRequests.removeFirst(count)
            runningCommands += 1
            Task { [bytes] in await self.compute(batch, bytes) }
        }
    }

    private func compute(_ batch: [ChecksumRequest], _ bytes: Int64) async {
        let digests = await run(batch.map(\.path), within: Self.timeLimit(for: bytes))?.digests ?? []
        for (index, request) in batch.enumerated() {
            request.result.resume(.success(index < digests.count ? digests[index] : nil))
        }
        // After a failed command, request no more checksums over this connection.
        if digests.isEmpty { algorithmTask = Task { nil } }
        runningCommands -= 1
        startCommands()
    }

    /// 60 s plus 1 s per MiB of files, which is enough for a slow server.
    static func timeLimit(for bytes: Int64) -> Duration { .seconds(60 + (bytes >> 20)) }

    private nonisolated func run(
        _ paths: [[UInt8]], within limit: Duration
    ) async -> (algorithm: ChecksumAlgorithm, digests: [Checksum?])? {
        guard let runner else { return nil }
        let command = Task { try await runner.run(ChecksumCommand.text, input: ChecksumCommand.input(paths)) }
        let deadline = Task {
            try await Task.sleep(for: limit)
            command.cancel()
        }
        defer { deadline.cancel() }
        // The reason does not matter: the next SFTP request reports a broken connection.
        return (try? await command.value).flatMap(ChecksumCommand.results)
    }
}
