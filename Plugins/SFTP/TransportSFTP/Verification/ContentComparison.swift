import TransferCore
import TransportSupport

/// Makes sure that a file here and one at the server have the same content: by a program of the server's where it runs one, and otherwise by
/// reading the server's file back.
struct ContentComparison {
    /// What was found.
    struct Outcome {
        /// Nil if the contents differ.
        var digest: ContentDigest?
        /// What it took, if that was more than usual.
        var warnings: [String] = []
    }

    private struct Different: Error {}

    let connection: PooledConnection
    let features: ServerFeatures
    let threads: WorkerThreads
    let reporter: AttemptReporter

    /// The queue takes an attempt for stalled that is silent for long.
    private static let wordInterval = Duration.seconds(2)
    private static let shortestPatience = Duration.seconds(60)
    /// How many bytes a second even a slow server computes the checksum of.
    private static let slowestRate: Int64 = 2_000_000

    /// - Parameters:
    ///   - path: The file at the server.
    ///   - name: What to call it in messages.
    /// - Throws: A `TransferError`: `unsupported` if the server neither computes checksums nor lets the file be read back.
    func compare(_ path: [UInt8], _ name: String, with local: LocalContent) async throws -> Outcome {
        // While the server is busy, too, and says so in no other way.
        let word = giveWord(for: local.size)
        defer { word.cancel() }
        async let found = connection.checksums.digest(of: path, size: local.size)
        let digest = try await local.digest(.sha256, on: threads)
        if let remote = try await found {
            let same = remote.algorithm == digest.algorithm ? digest : try await local.digest(remote.algorithm, on: threads)
            if remote == same { return Outcome(digest: same) }
            // The shell may see another file of that name than SFTP does: what comes by SFTP decides.
        }
        word.cancel()
        let isSame = try await readBack(path, name, local)
        let warning = "\(connection.client.serverName) computes no checksum of \(name), so all of it was read back to compare it."
        return Outcome(digest: isSame ? digest : nil, warnings: [warning])
    }

    /// Whether a file here has a checksum.
    ///
    /// - Throws: A `TransferError` if it can't be read; `CancellationError`.
    func isThat(_ digest: ContentDigest, of local: LocalContent) async throws -> Bool {
        let word = giveWord(for: local.size)
        defer { word.cancel() }
        return try await local.digest(digest.algorithm, on: threads) == digest
    }

    /// Reports activity to the queue while a checksum is computed, for as long as that may take. After that the queue's stall timeout applies, so a
    /// server that never answers is given up.
    private func giveWord(for size: Int64) -> Task<Void, any Error> {
        let end = ContinuousClock.now + Self.shortestPatience + .seconds(size / Self.slowestRate)
        return Task { [reporter] in
            while ContinuousClock.now < end {
                reporter.reportActivity()
                try await Task.sleep(for: Self.wordInterval)
            }
        }
    }

    /// - Parameter failure: The server's answer to who would read the file.
    static func impossible(_ name: String, at server: String, _ failure: StatusFailure) -> TransferError {
        TransferError(
            .unsupported, .unsupported,
            "\(server) neither computes checksums nor lets \(name) be read back, so what arrives there can't be verified.",
            cause: failure.status.message.isEmpty ? nil : failure.status.message)
    }

    /// Whether the server has the same in some blocks of a file, by reading them back.
    ///
    /// - Throws: A `TransferError`: `unsupported` if the server does not let the file be read back; `CancellationError`.
    func isSame(_ blocks: RecentBlocks, _ path: [UInt8], _ name: String, as local: LocalContent) async throws -> Bool {
        try await readBack(path, name, local) { blocks.next() }
    }

    /// - Parameter next: Says what is compared next; nil for all of the file.
    /// - Returns: Whether the server's file is the same.
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
            // Each piece by itself, as they come in any order and a server could keep the first one back for ever.
            try await reader.read(next: next ?? ContentBlocks(0..<local.size).next) { [reporter] pieces in
                // Only what comes is a sign of life: a server that stops is given up.
                reporter.reportActivity()
                for piece in pieces {
                    let range = piece.offset..<piece.offset + Int64(piece.bytes.count)
                    guard try local.read(range) == piece.bytes else { throw Different() }
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
