import TransferCore
import TransportSupport

/// Compares a local file with a file on the server: by a checksum that the server computes, or by reading the server's file back.
struct ContentComparison {
    struct Outcome {
        /// The checksum; nil if the contents differ.
        var digest: Checksum?
        /// Warnings for the receipt; empty unless the client read the whole file back.
        var warnings: [String] = []
    }

    private struct Different: Error {}

    let connection: PooledConnection
    let features: SFTPFeatures
    let threads: WorkerThreads
    let reporter: AttemptReporter

    /// The queue's stall timeout ends attempts without activity.
    private static let activityInterval = Duration.seconds(2)

    /// - Parameters:
    ///   - path: The path of the file on the server.
    ///   - name: The name of the file as shown in messages.
    ///   - local: The local file.
    /// - Throws: A `TransferError`. Its class is `unsupported` if the server can't compute checksums and does not allow the file to be read back.
    func compare(_ path: [UInt8], _ name: String, with local: LocalContent) async throws -> Outcome {
        // The server reports no progress while it computes the checksum.
        let activityReports = reportActivity(for: local.size)
        defer { activityReports.cancel() }
        async let found = connection.checksums.digest(of: path, size: local.size)
        let digest = try await local.checksum(.sha256, on: threads)
        if let remote = try await found {
            let same = remote.algorithm == digest.algorithm ? digest : try await local.checksum(remote.algorithm, on: threads)
            if remote == same { return Outcome(digest: same) }
            // In the shell, the path may lead to another file than over SFTP, so a difference needs another check.
        }
        activityReports.cancel()
        let isSame = try await readBack(path, name, local)
        let warning =
            "\(connection.client.serverName) returned no matching checksum of \(name), so the whole file was read back and compared."
        return Outcome(digest: isSame ? digest : nil, warnings: [warning])
    }

    /// - Throws: A `TransferError` if the file can't be read, or `CancellationError`.
    func hasChecksum(_ digest: Checksum, of local: LocalContent) async throws -> Bool {
        let activityReports = reportActivity(for: local.size)
        defer { activityReports.cancel() }
        return try await local.checksum(digest.algorithm, on: threads) == digest
    }

    /// Reports activity up to the longest plausible time for computing a checksum. Afterwards, the queue's stall timeout applies.
    private func reportActivity(for size: Int64) -> Task<Void, any Error> {
        let end = ContinuousClock.now + RemoteChecksums.timeLimit(for: size)
        return Task { [reporter] in
            while ContinuousClock.now < end {
                reporter.reportActivity()
                try await Task.sleep(for: Self.activityInterval)
            }
        }
    }

    /// - Parameter failure: The server's response to the attempt to read the file.
    static func impossible(_ name: String, at server: String, _ failure: StatusFailure) -> TransferError {
        TransferError(
            .unsupported, .unsupported,
            "\(server) can't compute checksums and does not allow \(name) to be read back, so its content can't be verified.",
            cause: failure.status.message.isEmpty ? nil : failure.status.message)
    }

    /// - Returns: Whether all blocks equal the local file's.
    /// - Throws: A `TransferError`, or `CancellationError`. The class is `unsupported` if the server does not allow the file to be read back.
    func isSame(_ blocks: RecentBlocks, _ path: [UInt8], _ name: String, as local: LocalContent) async throws -> Bool {
        try await readBack(path, name, local) { blocks.next() }
    }

    /// - Parameter next: Returns the next range to compare; nil to compare the whole file.
    /// - Returns: Whether the contents are the same.
    private func readBack(
        _ path: [UInt8], _ name: String, _ local: LocalContent, next: (@Sendable () -> Range<Int64>?)? = nil
    ) async throws -> Bool {
        let handle: Handle
        do {
            handle = try await connection.client.open(.open(path, [.read]))
        } catch let failure as StatusFailure where !failure.status.code.meansMissing {
            throw Self.impossible(name, at: connection.client.serverName, failure)
        }
        defer { connection.client.close(handle) }
        if next == nil {
            let size = try await connection.client.attributes(.fstat(handle)).size
            guard size == nil || size == UInt64(local.size) else { return false }
        }
        let reader = ContentReader(handle, at: connection.client, features, on: threads, reporting: reporter)
        do {
            // Compare each packet as soon as it arrives. Waiting for all preceding packets could use much memory, because packets arrive in any
            // order and the server could delay the first one.
            try await reader.read(next: next ?? ContentBlocks(0..<local.size).next) { [reporter] packets in
                // The queue must notice a server that stops sending.
                reporter.reportActivity()
                for packet in packets {
                    let range = packet.offset..<packet.offset + Int64(packet.bytes.count)
                    guard try local.read(range) == packet.bytes else { throw Different() }
                }
            }
            return true
        } catch is Different {
            return false
        } catch is ContentReader.EndedEarly {
            return false
        } catch let failure as StatusFailure where failure.status.code == .permissionDenied {
            throw Self.impossible(name, at: connection.client.serverName, failure)
        }
    }
}
