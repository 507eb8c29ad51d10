import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// Sessions with arbitrary sizes in a real queue. The queue never traps, quarantines no session, and explains why each unfinished session has not
/// completed.
enum SizeMatrix {
    /// A session in the queue.
    struct Session {
        let id: SessionID
        /// Checks the state of the session after its end.
        let check: (SessionStatus) -> Void
    }

    /// The sizes of files in bytes, up to the largest `Int64`.
    static let sizes: [Int64] = [0, 1 << 31, 1 << 32, (1 << 56) - 1, 1 << 56, 1 << 60, .max]

    /// The options of sessions with one attempt per file and several files in flight.
    static func options(_ policy: OverwritePolicy, segmentsPerFile: Int = 1) -> SessionOptions {
        SessionOptions(
            retry: RetryPolicy(base: .zero, maximumAttempts: 1), filesInFlight: 17, segmentsPerFile: segmentsPerFile, overwrite: policy)
    }

    /// Returns the kind of session that has 200 files for a size and a policy. Each kind has such a session for some size and policy.
    ///
    /// - Parameter kinds: The number of kinds, 20 at most. A test has one kind of session for each response of its server.
    static func kindOfManyFiles(_ kinds: Int, _ size: Int64, _ policy: OverwritePolicy) -> Int {
        combination(size, policy) % kinds
    }

    /// Returns how many files each session of one kind has, for a size and a policy. Each kind has a session with 1 file, half of the kinds also
    /// one with 17, and one kind also one with 200.
    static func counts(_ kind: Int, of kinds: Int, _ size: Int64, _ policy: OverwritePolicy) -> [Int] {
        let hasSeveralFiles = (kind + combination(size, policy)).isMultiple(of: 2)
        return [1] + (hasSeveralFiles ? [17] : []) + (kind == kindOfManyFiles(kinds, size, policy) ? [200] : [])
    }

    private static func combination(_ size: Int64, _ policy: OverwritePolicy) -> Int {
        5 * (sizes.firstIndex(of: size) ?? sizes.count) + (OverwritePolicy.allCases.firstIndex(of: policy) ?? 0)
    }

    /// Whether the queue accepts a session with `count` files of `size` bytes.
    static func isPossible(_ size: Int64, count: Int) -> Bool {
        size <= FileSize.maximum && Int64(count) <= FileSize.sessionMaximum / max(size, 1)
    }

    /// Creates a sparse file. Returns nil if no file system of this machine supports its size.
    static func sparseFile(_ size: Int64, in interop: InteropFixture) -> FilePath? {
        for folder in [interop.folder.path, "/dev/shm"] {
            let path = FilePath(folder).appending("transferkit-\(UUID().uuidString)")
            guard let file = try? FileDescriptor.open(path, .writeOnly, options: .create, permissions: .ownerReadWrite) else { continue }
            defer { try? file.close() }
            if (try? file.resize(to: size)) != nil { return path }
            try? FileManager.default.removeItem(atPath: path.string)
        }
        return nil
    }

    /// Enqueues an upload of one file under several names. The queue must accept possible sizes only.
    ///
    /// - Returns: The ID of the session; nil if the queue rejected it.
    static func enqueue(
        _ file: FilePath, of size: Int64, times count: Int, to account: String, _ options: SessionOptions, in queue: TransferQueue
    ) async throws -> SessionID? {
        let isAccepted = isPossible(size, count: count)
        let items = try (0..<count).map { TransferItem(file, as: try RemotePath("\($0)")) }
        do {
            let session = try await queue.enqueue(.upload(items: items, to: account, options: options))
            #expect(isAccepted, "\(count) files of \(size) bytes")
            return session.id
        } catch let error as QueueError {
            #expect(!isAccepted && error.code == .unreadableItems && error.message.contains("iB"), "\(count) files: \(error)")
            return nil
        }
    }

    /// Runs sessions in one queue until they end, and checks them. Then opens the queue again, and removes the sessions.
    ///
    /// - Parameter enqueue: Enqueues the sessions.
    static func run(
        in interop: InteropFixture, _ accounts: [Account], over transport: any Transport,
        enqueue: (TransferQueue) async throws -> [Session]
    ) async throws {
        let clock = AdvanceableClock()
        let account = try #require(accounts.first)
        var queue = try await interop.openQueue(account, transports: [transport], clock: clock.engineClock)
        for account in accounts.dropFirst() { try await queue.save(account) }
        let sessions = try await enqueue(queue)
        try await queue.start()
        await queue.waitUntilIdle(scheduled: false)
        while let due = await queue.status().nextDue, try await queue.sessions().contains(where: Self.mayProgress) {
            clock.advance(by: max(.seconds(due.timeIntervalSince(clock.date)), .milliseconds(1)))
            await queue.waitUntilIdle(scheduled: false)
        }
        for session in sessions {
            let status = try await queue.session(session.id).status
            session.check(status)
            #expect((0...FileSize.sessionMaximum).contains(status.statistics.bytesKnown))
            if status.state == .completed { continue }
            #expect(status.why?.description.hasSuffix(".") ?? status.error?.message.hasSuffix(".") == true, "\(status)")
        }
        _ = try await queue.statistics()
        #expect(try await queue.quarantined().isEmpty)
        await queue.shutdown()
        queue = try await interop.openQueue(account, transports: [transport], clock: clock.engineClock)
        #expect(try await queue.sessions().count == sessions.count)
        try await queue.apply(.remove(isForced: true), to: .all)
        #expect(try await queue.quarantined().isEmpty)
        await queue.shutdown()
    }

    /// Whether a session may still make progress. A session that lacks space on the local disk waits for the user.
    private static func mayProgress(_ status: SessionStatus) -> Bool {
        if case .noSpace? = status.why { return false }
        return status.state != .completed && status.state != .failed
    }
}
